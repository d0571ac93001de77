"""Copies of tables and reservations: the same content, and nothing shared that changes."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings

from scheduler.hosts import columns
from scheduler.hosts.consumption import Consumption
from scheduler.hosts.reservations import Reservations
from scheduler.hosts.table import HostTable
from scheduler.introspection.state_hash import state_hash
from tests import fleets
from tests.builders import NOW, a_host

SMALL = Consumption(ram_mb=512, disk_mb=1024, vcpus=1)


def everything(table: HostTable) -> dict[str, Any]:
    """A snapshot with mappings of its own."""
    instances = {host: dict(several) for host, several in table.instances.items()}
    return {**fleets.snapshot(table), "instances": instances}


def change_everything(table: HostTable, reservations: Reservations) -> None:
    """Do all that a table and its reservations can be made to do."""
    for number, key in enumerate(list(table.rows)):
        reservations.reserve(table.rows[key], f"new-{number}", SMALL, NOW)
        table.update(table.rows[key], {"free_ram_mb": 1, "hypervisor_type": "other", "stats": "{}"})
        table.set_service(key[0], {"host": key[0], "disabled": True}, NOW + 1)
        table.put_instance(key[0], f"more-{number}", object())
    table.capabilities["h1", None] = {}
    table.cells["cell"] = True
    table.set_aggregates({})
    a_host("another", "one", table=table)
    table.remove(next(iter(table.rows)))


@settings(deadline=None, max_examples=40)
@given(fleets.fleets(), st.booleans())
def test_what_becomes_of_one_leaves_the_other(table: HostTable, is_copy_changed: bool) -> None:
    reservations = Reservations(table)
    for key, row in list(table.rows.items())[:2]:
        reservations.reserve(row, f"u-{key[0]}", SMALL, NOW)
    twin = table.copy()
    books_of_twin = reservations.copy(twin)
    before, hash_before = everything(table), state_hash(table, reservations)
    assert everything(twin) == before
    assert state_hash(twin, books_of_twin) == hash_before
    changed, kept = ((twin, books_of_twin), (table, reservations))
    if not is_copy_changed:
        changed, kept = kept, changed
    change_everything(*changed)
    assert everything(kept[0]) == before
    assert state_hash(*kept) == hash_before


@settings(deadline=None, max_examples=40)
@given(fleets.fleets())
def test_picks_of_a_copy_can_be_undone_there(table: HostTable) -> None:
    empty = state_hash(table, Reservations(table))
    reservations = Reservations(table)
    for key, row in table.rows.items():
        reservations.reserve(row, f"u-{key[0]}", SMALL, NOW)
    taken = state_hash(table, reservations)
    twin = reservations.copy(table.copy())
    for pick in list(twin):
        twin.release(pick)
    assert (state_hash(twin.table, twin), state_hash(table, reservations)) == (empty, taken)


def test_a_copy_grows() -> None:
    table = HostTable().copy()
    for number in range(200):
        a_host(f"h{number}", f"n{number}", table=table)
    assert all(len(table.column(name)) == table.capacity for name in columns.COLUMN_TYPES)
