"""A worker's state host by host, compared with the database, and read again."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy

from scheduler import errors, objects
from scheduler.db.tables import compute_nodes
from scheduler.hosts.host_state import Consumption
from scheduler.hosts.reservations import Reservation, Reservations
from scheduler.hosts.table import HostTable
from scheduler.introspection import state
from scheduler.introspection.host_dump import differences
from scheduler.numa import HostCell, HostTopology
from tests.builders import NOW, a_fleet, a_host
from tests.unit.introspection.subjects import World, a_world
from tests.world import fleet, random_fleets
from tests.world.fleet import a_spec

#: A server with a cell of its own.
GUEST = objects.InstanceNUMATopology(
    cells=[objects.InstanceNUMACell(id=0, cpuset={0}, pcpuset=set(), memory=2048)]
)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with a_world(tmp_path, hosts=5) as made:
        yield made


def place(world: World, uuid: str, **fields: Any) -> str:
    """Have the worker promise a host to a server; its name."""
    spec = a_spec(uuid, **fields)
    (chosen,) = world.subject.manager.select_destinations(
        None, spec_obj=spec, instance_uuids=[uuid]
    )
    name: str = chosen["host"]
    return name


def behind_the_back(world: World, host: str, **values: Any) -> None:
    """Change a row such that no read of changes can tell."""
    update = sqlalchemy.update(compute_nodes).where(compute_nodes.c.host == host)
    with world.database.write() as connection:
        connection.execute(update.values(**values))


def of_host(world: World, host: str) -> dict[str, Any]:
    (found,) = state.state_hosts(world.subject, hosts=[host])["hosts"]
    return dict(found)


def test_numbers_follow_what_the_worker_knows_and_promises(world: World) -> None:
    names = ("hosts", "candidates", "up", "disabled", "aggregates", "open_picks")
    before = state.state_summary(world.subject)
    place(world, "u1")
    after = state.state_summary(world.subject)
    assert [before[name] for name in names] == [5, 5, 5, 0, 1, 0]
    assert [after[name] for name in names] == [5, 5, 5, 0, 1, 1]
    assert after["instances"] == before["instances"] + 1
    assert 0 <= after["state_age_seconds"] < 60
    assert after["driver"] == "FilterScheduler"


def test_a_host_manager_of_ones_own_is_named(world: World) -> None:
    manager: Any = world.subject.manager
    manager.driver.host_manager = object()
    with pytest.raises(errors.InvalidRequest, match="object keeps its state"):
        state.state_summary(world.subject)


def test_pages_hold_every_host_once_and_in_order(world: World) -> None:
    after, names, pages = None, [], 0
    while pages == 0 or after is not None:
        page = state.state_hosts(world.subject, after=after, limit=2)
        names += [each["host"] for each in page["hosts"]]
        after, pages = page["next"], pages + 1
    assert (names, pages) == ([f"cmp{number}" for number in range(1, 6)], 3)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *(("limit", value) for value in (0, -1, 501, "many")),
        *(("hosts", value) for value in ("cmp1", [1])),
        *(("after", value) for value in ("cmp1", ["cmp1"], [1, "cmp1"])),
    ],
)
def test_what_cannot_be_a_page_is_named(world: World, argument: str, value: Any) -> None:
    with pytest.raises(errors.InvalidRequest, match=argument):
        state.state_hosts(world.subject, **{argument: value})


def test_a_host_that_is_not_there_is_named_with_the_nearest(world: World) -> None:
    answer = state.state_hosts(world.subject, hosts=["cnp1", "nothing-like-it", "cmp2"])
    assert [each["host"] for each in answer["hosts"]] == ["cmp2"]
    assert answer["unknown"] == {"cnp1": "cmp1", "nothing-like-it": None}


def compared(world: World, host: str, fresh: World) -> dict[str, tuple[Any, ...]]:
    """By column what memory and database say, how many picks there are, if that explains it."""
    found = differences((host, host), of_host(world, host), of_host(fresh, host))
    return {
        each["column"]: (each["memory"], each["database"], each["picks"], each["explained"])
        for each in found
    }


def test_differences_are_named_and_those_of_promises_explained(
    world: World, tmp_path: Path
) -> None:
    host = place(world, "u1")
    behind_the_back(world, host, hypervisor_version=7, stats='{"io_workload": "3"}')
    with a_world(tmp_path, hosts=5, is_new=False) as fresh:
        found = compared(world, host, fresh)
    dumped = of_host(world, host)
    assert [each["instance"] for each in dumped["picks"]] == ["u1"]
    ram = dumped["reported"]["free_ram_mb"]
    assert found["free_ram_mb"] == (ram - 2048, ram, 1, True)
    assert found["instances"] == (["u1"], [], 1, True)
    assert found["hypervisor_version"] == (2012000, 7, 0, False)
    assert found["num_io_ops"] == (1, 3, 1, False)
    explained = {name for name, (*_rest, is_explained) in found.items() if is_explained}
    assert explained == {"free_ram_mb", "free_disk_mb", "vcpus_used", "num_instances", "instances"}


def test_cells_that_a_promise_took_show_as_they_were_reported(world: World) -> None:
    behind_the_back(world, "cmp1", numa_topology=random_fleets.TOPOLOGY)
    state.state_refresh(world.subject)
    spec = a_spec("u1", force_hosts=["cmp1"], numa_topology=GUEST)
    world.subject.manager.select_destinations(None, spec_obj=spec, instance_uuids=["u1"])
    found = of_host(world, "cmp1")
    assert found["values"]["numa_topology"] != random_fleets.TOPOLOGY
    assert found["reported"]["numa_topology"] == random_fleets.TOPOLOGY


def test_a_full_read_says_what_it_repaired(world: World) -> None:
    place(world, "u1")
    untouched = state.state_refresh(world.subject)
    assert (untouched["repaired"], untouched["repairs"]) == (0, [])
    table = world.subject.known_host_manager.table
    table.update(table.rows["cmp2", "cmp2"], {"total_usable_ram_mb": 1})
    table.remove(("cmp3", "cmp3"))
    assert state.hash_of_state(world.subject)["hash"] != untouched["hash"]
    answer = state.state_refresh(world.subject)
    told = {(each["host"], each["column"]): each["database"] for each in answer["repairs"]}
    assert told == {("cmp2", "total_usable_ram_mb"): fleet.MEMORY_MB, ("cmp3", "(host)"): "present"}
    assert (answer["repaired"], answer["hosts"]) == (2, 5)
    assert answer["hash"] == state.hash_of_state(world.subject)["hash"] == untouched["hash"]


def test_no_state_is_read_while_the_database_is_away(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = world.subject.known_host_manager

    def fail(*_given: Any, **_how: Any) -> None:
        raise sqlalchemy.exc.OperationalError("select", {}, Exception("away"))

    monkeypatch.setattr(manager._reader, "read", fail)
    for ask in (state.state_update, state.state_refresh):
        with pytest.raises(errors.StateUnavailable, match="does not answer"):
            ask(world.subject)
    assert of_host(world, "cmp1")


# --- the hash -------------------------------------------------------------------------

CELLS = HostTopology(
    (HostCell(0, frozenset({0, 1}), None, 2048), HostCell(1, frozenset({2}), None, 64))
)
SMALL = Consumption(ram_mb=512, disk_mb=1024, vcpus=1)
Change = Callable[[HostTable, Reservations], object]


def reserve(picks: Reservations) -> Reservation:
    [made] = picks.reserve([0], [("u9", None)], SMALL, NOW)
    return made


#: Changes of what a decision depends on.
MATTERING: dict[str, Change] = {
    "a number": lambda table, _picks: table.update(0, {"free_ram_mb": 1}),
    "a text": lambda table, _picks: table.update(0, {"hypervisor_type": "x"}),
    "a document": lambda table, _picks: table.update(0, {"stats": "{}"}),
    "cells": lambda table, _picks: table.update(1, {"numa_topology": None}),
    "a host less": lambda table, _picks: table.remove(("h1", "n1")),
    "a host more": lambda table, _picks: a_host("h3", "n3", table=table),
    "a service": lambda table, _picks: table.set_service("h1", {"disabled": True}, NOW),
    "an instance less": lambda table, _picks: table.drop_instance("u1"),
    "a cell": lambda table, _picks: table.cells.update(c=False),
    "a pick": lambda _table, picks: reserve(picks),
}
OTHERS: dict[str, Change] = {
    "a heartbeat": lambda table, _picks: table.set_service("h1", table.services["h1"], NOW + 9),
    "a report of the same": lambda table, _picks: table.update(0, {"updated_at": NOW + 9}),
    "the same cells as a value": lambda table, _picks: table.update(1, {"numa_topology": CELLS}),
    "there and back": lambda _table, picks: picks.release(reserve(picks)),
    "another row number": lambda table, _picks: (
        table.remove(("h1", "n1")),
        a_host("h0", "n0", table=table),
        a_host("h1", "n1", table=table, node_id=1, instances=["u1"]),
        table.remove(("h0", "n0")),
    ),
}


@pytest.mark.parametrize("name", [*MATTERING, *OTHERS])
def test_the_hash_follows_what_a_decision_depends_on(name: str) -> None:
    table = a_fleet({"instances": ["u1"]}, {"numa_topology": CELLS.to_text()})
    reservations = Reservations(table)
    before = state.state_hash(table, reservations)
    (MATTERING | OTHERS)[name](table, reservations)
    assert (state.state_hash(table, reservations) != before) is (name in MATTERING)
