"""What changes the hash of a worker's state, and what does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scheduler.hosts.consumption import Consumption
from scheduler.hosts.reservations import Reservations
from scheduler.hosts.table import HostTable
from scheduler.introspection.state import state_hash
from scheduler.numa import HostCell, HostTopology
from tests.builders import NOW, a_fleet, a_host

CELLS = HostTopology(
    (HostCell(0, frozenset({0, 1}), None, 2048), HostCell(1, frozenset({2}), None, 64))
)
SMALL = Consumption(ram_mb=512, disk_mb=1024, vcpus=1)
Change = Callable[[HostTable, Reservations], object]


def fleet_and_books() -> tuple[HostTable, Reservations]:
    table = a_fleet({"instances": ["u1"]}, {"numa_topology": CELLS.to_text()})
    return table, Reservations(table)


CHANGES: dict[str, Change] = {
    "a number": lambda table, _books: table.update(0, {"free_ram_mb": 1}),
    "a text": lambda table, _books: table.update(0, {"hypervisor_type": "x"}),
    "a document": lambda table, _books: table.update(0, {"stats": "{}"}),
    "cells": lambda table, _books: table.update(1, {"numa_topology": None}),
    "a host less": lambda table, _books: table.remove(("h1", "n1")),
    "a host more": lambda table, _books: a_host("h3", "n3", table=table),
    "a service": lambda table, _books: table.set_service("h1", {"disabled": True}, NOW),
    "no service": lambda table, _books: table.set_service("h1", None, NOW),
    "an instance less": lambda table, _books: table.drop_instance("u1"),
    "a cell": lambda table, _books: table.cells.update(c=False),
    "a pick": lambda _table, reservations: reservations.reserve(0, "u9", SMALL, NOW),
}
NO_CHANGES: dict[str, Change] = {
    "nothing": lambda _table, _books: None,
    "a heartbeat": lambda table, _books: table.set_service("h1", table.services["h1"], NOW + 9),
    "a report of the same": lambda table, _books: table.update(0, {"updated_at": NOW + 9}),
    "the same cells as a value": lambda table, _books: table.update(1, {"numa_topology": CELLS}),
    "there and back": lambda _table, reservations: reservations.release(
        reservations.reserve(0, "u9", SMALL, NOW)
    ),
    "another row number": lambda table, _books: (
        table.remove(("h1", "n1")),
        a_host("h0", "n0", table=table),
        a_host("h1", "n1", table=table, node_id=1, instances=["u1"]),
        table.remove(("h0", "n0")),
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_a_decision_depends_on_counts(name: str) -> None:
    table, reservations = fleet_and_books()
    before = state_hash(table, reservations)
    CHANGES[name](table, reservations)
    assert state_hash(table, reservations) != before


@pytest.mark.parametrize("name", NO_CHANGES)
def test_what_it_does_not_depend_on_does_not(name: str) -> None:
    table, reservations = fleet_and_books()
    before = state_hash(table, reservations)
    NO_CHANGES[name](table, reservations)
    assert state_hash(table, reservations) == before
