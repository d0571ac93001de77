"""The caching driver: the state is as old as the last run of its task, own picks count at once."""

import pytest

from scheduler.evaluation.cases import CURRENT
from scheduler.hosts.reservations import NewtonReservations, Reservations
from tests.unit.drivers.scheduling import a_clock, a_driver, select_if_any
from tests.unit.evaluation.builders import UUIDS, a_fleet, a_node, a_service


class World:
    """A caching driver and the database that it reads now and then."""

    def __init__(self, fleet, **how):
        self.clock = a_clock()
        self.driver = a_driver(fleet, "caching_scheduler", clock=self.clock, **how)
        self.database = self.driver.host_manager._reader

    def ask(self, memory_mb=1024, *uuids):
        """The hosts chosen; none if there is none."""
        return select_if_any(self.driver, memory_mb, *uuids)

    def fill(self):
        self.driver.run_periodic_tasks(None)


@pytest.fixture(params=["current", "newton"])
def semantics(request):
    return {"semantics": request.param}


def test_own_picks_are_seen_at_once(semantics):
    world = World(a_fleet(4096, 3584), options=semantics)
    assert [world.ask(1024, uuid) for uuid in UUIDS[:3]] == [["h1"], ["h2"], ["h1"]]


@pytest.mark.parametrize(
    ("reservations", "left_mb"),
    [(Reservations, 3072), (NewtonReservations, 3072), (CURRENT.reservations, 4096)],
)
def test_who_remembers_picks_over_a_fill(reservations, left_mb):
    world = World(a_fleet(4096), reservations=reservations)
    world.ask(1024, UUIDS[0])
    world.fill()
    assert world.driver.host_manager.state_of("h1").free_ram_mb == left_mb


def test_an_empty_fleet_stays_empty_until_the_task_runs(semantics):
    world = World(a_fleet(), options=semantics)
    assert world.ask() == []
    world.database.change({"compute_nodes": [a_node("h1")], "services": [a_service("h1")]})
    assert world.ask() == []
    world.fill()
    assert world.ask() == ["h1"]


@pytest.mark.parametrize(("late", "expected"), [(31, []), (30, ["h1"])])
def test_heartbeats_are_those_of_the_fill(semantics, late, expected):
    """The heartbeat is 30 seconds old at the fill; edge case 35."""
    world = World(a_fleet(4096), options=semantics, enabled_filters=["ComputeFilter"])
    assert world.ask() == ["h1"]
    world.clock.now += late
    assert world.ask() == expected
