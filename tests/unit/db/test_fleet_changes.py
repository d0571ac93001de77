"""Entries that triggers append, how long they are kept, and readers that have missed some."""

import datetime
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

from conductor_stub import server_rows
from conductor_stub.compute import registration
from scheduler.db import aggregates, fleet_poll, services, tables
from scheduler.db.fleet import FleetReader
from scheduler.db.fleet_poll import KEPT
from scheduler.db.tables import changes
from scheduler.db.tables import compute_nodes as nodes
from tests.unit.db.builders import NOW, delete_host, instance, node_values

OVERLAP = datetime.timedelta(seconds=3)
NODE = {**node_values(), "host": "h1", "hypervisor_hostname": "h1"}
SERVICE = ("h1", "nova-compute")


@pytest.fixture
def host(database):
    """The ids of a compute node and its service."""
    with database.write() as conn:
        made = registration.put_services(conn, ["h1"], 74)
        aggregates.create(conn, "ssd", {"disk": "ssd"}, ["h1"])
        return registration.put_nodes(conn, [NODE])[0], made["h1"]


def kinds_since(conn: Connection, last: int) -> list[str]:
    query = sa.select(changes.c.kind).where(changes.c.id > last).distinct()
    return sorted(conn.execute(query).scalars())


def last_id(conn: Connection) -> int:
    return conn.execute(sa.select(sa.func.max(changes.c.id))).scalar() or 0


CHANGES: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "a report": (lambda c, n, _s: registration.update_node(c, n, {}, NOW), ["compute_nodes"]),
    "a heartbeat": (lambda c, _n, s: services.heartbeat(c, [s], NOW), []),
    "disabled": (lambda c, *_: services.change(c, *SERVICE, disabled=True), ["service_flags"]),
    "renamed": (lambda c, *_: c.execute(tables.services.update().values(host="h")), ["services"]),
    "a host goes": (lambda c, *_: delete_host(c, "h1"), ["compute_nodes", "services"]),
    "a row vanishes": (lambda c, n, _s: c.execute(nodes.delete()), ["compute_nodes"]),
    "a server": (lambda c, *_: server_rows.create_instance(c, instance(host="h1")), ["instances"]),
    "a host leaves": (
        lambda c, *_: aggregates.remove_host(c, aggregates.get(c, "ssd").id, "h1"),
        ["aggregates"],
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_appends_an_entry(database, host, change):
    do, kinds = CHANGES[change]
    with database.write() as conn:
        last = last_id(conn)
        do(conn, *host)
        assert kinds_since(conn, last) == kinds


def test_a_row_that_was_deleted_before_goes_without_an_entry(database, host):
    with database.write() as conn:
        delete_host(conn, "h1")
        last = last_id(conn)
        conn.execute(nodes.delete())
        assert kinds_since(conn, last) == []


def test_old_entries_go_but_for_the_newest(database, host):
    def age(minutes: int, *which: Any) -> None:
        ago = datetime.timedelta(minutes=minutes)
        when = datetime.datetime.now(datetime.UTC).replace(tzinfo=None) - ago
        conn.execute(changes.update().where(*which).values(changed_at=when))

    with database.write() as conn:
        newest = last_id(conn)
        for minutes, which, left in (
            (9, (), newest),
            (11, (changes.c.id < newest - 1,), 2),
            (11, (), 1),
        ):
            age(minutes, *which)
            before = conn.execute(sa.select(sa.func.count()).select_from(changes)).scalar_one()
            fleet_poll.remove_old(conn)
            after = conn.execute(sa.select(sa.func.count()).select_from(changes)).scalar_one()
            assert after == min(before, left), minutes
        assert last_id(conn) == newest


def removed(conn: Connection) -> None:
    """As if the reader had slept while others removed what it has not read."""
    last = last_id(conn)
    registration.put_nodes(conn, [NODE])
    conn.execute(changes.delete().where(changes.c.id <= last))


def put_back(conn: Connection) -> None:
    """As in a copy of the database of which another scheduler has gone on."""
    last = last_id(conn)
    conn.execute(changes.update().where(changes.c.id == last).values(kind="aggregates"))


def truncated(conn: Connection) -> None:
    conn.execute(changes.delete())


@pytest.mark.parametrize("history", [removed, put_back, truncated, None])
@pytest.mark.parametrize("later", [OVERLAP / 6, KEPT * 2], ids=str)
def test_a_reader_reads_all_unless_it_knows_the_oldest_entry(database, host, history, later):
    reader = FleetReader(database, OVERLAP)
    for when in (NOW, NOW + OVERLAP / 6):
        first = reader.read(when)
        list(first.nodes)
    assert not first.full
    if history is not None:
        with database.write() as conn:
            history(conn)
    found = reader.read(NOW + later)
    list(found.nodes)
    assert found.full is (history is not None)
    database.dispose()
