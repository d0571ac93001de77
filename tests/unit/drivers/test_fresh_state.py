"""Requests that are decided on a state that was read shortly before they arrived."""

import contextlib

import pytest

from scheduler import errors, objects
from scheduler.hosts.host_manager import HostManager
from scheduler.replay.row_fleet import RowFleet
from tests.builders import a_conf, a_request
from tests.unit.drivers.scheduling import a_driver, select, select_if_any
from tests.unit.evaluation.builders import UUIDS, a_fleet, a_node, a_service


class World:
    """A filter driver on one host, after its first request, and the reads since."""

    def __init__(self, fresh_seconds):
        self.driver = a_driver(a_fleet(4096), options={"state_fresh_seconds": fresh_seconds})
        self.database = self.driver.host_manager._reader
        self.ask(1)
        self.reads = []
        self.driver.host_manager.read_listeners.append(self.reads.append)

    def ask(self, memory_mb, *uuids):
        return select_if_any(self.driver, memory_mb, *uuids)

    def add_host(self, memory_mb):
        node = a_node("h2", 2, memory_mb=memory_mb, free_ram_mb=memory_mb)
        self.database.change(
            {"compute_nodes": [node], "services": [a_service("h1"), a_service("h2")]}
        )


@pytest.mark.parametrize(
    ("fresh_seconds", "memory_mb", "host", "reads"),
    [(3600, 1, "h1", 0), (3600, 5000, "h2", 1), (0, 1, "h2", 1), (0, 5000, "h2", 1)],
)
def test_a_new_host_is_seen_at_once_by_a_request_that_needs_it(
    fresh_seconds, memory_mb, host, reads
):
    world = World(fresh_seconds)
    world.add_host(8192)
    assert world.ask(memory_mb) == [host]
    assert len(world.reads) == reads


def test_alternates_are_not_fewer_for_an_older_state():
    world = World(3600)
    world.add_host(4096)
    request = a_request(flavor={"memory_mb": 3000})
    (row,) = world.driver.select_destinations(None, request, None, return_alternates=True)
    assert sorted(each.service_host for each in row) == ["h1", "h2"]
    assert len(world.reads) == 1
    assert world.ask(4000) != []  # the decision before the read holds nothing


@pytest.mark.parametrize(
    ("state", "wanted", "hosts"),
    [
        ("active", {}, []),
        ("building", {}, ["h1"]),
        ("building", {"requested_destination": objects.Destination(host="h1")}, []),
        ("building", {"requested_destination": objects.Destination(node="h1")}, []),
        ("building", {"force_hosts": ["h1"]}, []),
        ("building", {"force_nodes": ["h1"]}, []),
    ],
    ids=["a move", "a build", "to a host", "to a node", "forced to a host", "forced to a node"],
)
def test_a_host_that_went_down_just_now_takes_no_server_that_is_bound(state, wanted, hosts):
    instance = {"uuid": UUIDS[0], "host": "h9", "node": "h9", "vm_state": state, "id": 1}
    fleet = a_fleet(4096, instances=[{**instance, "memory_mb": 1, "vcpus": 1}])
    driver = a_driver(
        fleet, options={"state_fresh_seconds": 3600}, enabled_filters=["ComputeFilter"]
    )
    driver.host_manager.refresh()
    driver.host_manager._reader.change({"services": [a_service("h1", forced_down=True)]})
    request = a_request(hints={"_nova_check_type": ["evacuate"]}, **wanted)
    chosen = []
    with contextlib.suppress(errors.NoValidHost):
        chosen = select(driver, request, UUIDS[0])
    assert chosen == hosts


@pytest.mark.parametrize("fresh_seconds", [3600, 0])
def test_a_refusal_is_final_after_one_read(fresh_seconds, caplog):
    caplog.set_level("INFO")
    world = World(fresh_seconds)
    assert world.ask(100_000) == []
    assert len(world.reads) == caplog.text.count("Filter RamFilter returned 0 hosts") == 1


def test_what_was_reserved_stays_subtracted_from_a_state_of_before():
    world = World(3600)
    assert [world.ask(3000, uuid) for uuid in UUIDS[:2]] == [["h1"], []]


def test_the_state_is_read_beside_the_requests():
    world = World(1)
    world.driver.host_manager.state_fresh_seconds = 0
    world.driver.host_manager.read_beside()
    assert not world.reads
    world.driver.host_manager.state_fresh_seconds = 1e-9
    world.driver.host_manager.read_beside()
    assert len(world.reads) == 1


@pytest.mark.parametrize(
    ("claims", "configured", "seconds"),
    [("placement", None, 1), ("placement", 0, 0), ("none", None, 0), ("database", 5, 5)],
)
def test_where_placement_verifies_choices_the_state_may_be_a_second_old(
    claims, configured, seconds
):
    conf = a_conf(scheduler__claims=claims, scheduler__state_fresh_seconds=configured)
    assert HostManager(conf, RowFleet(a_fleet(1))).state_fresh_seconds == seconds
