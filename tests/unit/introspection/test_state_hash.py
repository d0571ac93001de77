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
#: Changes, and whether the hash follows: it does if a decision depends on what has changed.
CHANGES: dict[str, tuple[Change, bool]] = {
    "a number": (lambda table, _picks: table.update(0, {"free_ram_mb": 1}), True),
    "a text": (lambda table, _picks: table.update(0, {"hypervisor_type": "x"}), True),
    "a document": (lambda table, _picks: table.update(0, {"stats": "{}"}), True),
    "cells": (lambda table, _picks: table.update(1, {"numa_topology": None}), True),
    "a host less": (lambda table, _picks: table.remove(("h1", "n1")), True),
    "a host more": (lambda table, _picks: a_host("h3", "n3", table=table), True),
    "a service": (lambda table, _picks: table.set_service("h1", {"disabled": True}, NOW), True),
    "no service": (lambda table, _picks: table.set_service("h1", None, NOW), True),
    "an instance less": (lambda table, _picks: table.drop_instance("u1"), True),
    "a cell": (lambda table, _picks: table.cells.update(c=False), True),
    "a pick": (lambda _table, picks: picks.reserve(0, "u9", SMALL, NOW), True),
    "nothing": (lambda _table, _picks: None, False),
    "a heartbeat": (
        lambda table, _picks: table.set_service("h1", table.services["h1"], NOW + 9),
        False,
    ),
    "a report of the same": (lambda table, _picks: table.update(0, {"updated_at": NOW + 9}), False),
    "the same cells as a value": (
        lambda table, _picks: table.update(1, {"numa_topology": CELLS}),
        False,
    ),
    "there and back": (
        lambda _table, picks: picks.release(picks.reserve(0, "u9", SMALL, NOW)),
        False,
    ),
    "another row number": (
        lambda table, _picks: (
            table.remove(("h1", "n1")),
            a_host("h0", "n0", table=table),
            a_host("h1", "n1", table=table, node_id=1, instances=["u1"]),
            table.remove(("h0", "n0")),
        ),
        False,
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_the_hash_follows_what_a_decision_depends_on(name: str) -> None:
    table = a_fleet({"instances": ["u1"]}, {"numa_topology": CELLS.to_text()})
    reservations = Reservations(table)
    before = state_hash(table, reservations)
    change, matters = CHANGES[name]
    change(table, reservations)
    assert (state_hash(table, reservations) != before) is matters
