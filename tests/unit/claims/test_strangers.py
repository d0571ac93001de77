"""Hosts come under ever new names and go: nothing stays of them in a worker's memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from scheduler.db import compute_nodes, services, tables
from tests.unit.claims.fleets import Fleet, a_name
from tests.unit.db.builders import delete_host

#: One row per host that ever was is kept in the database, and read again and again.
KEPT = {"known", "host_ids"}


def holders(root: Any, name: str) -> set[str]:
    """Attributes below *root* with a mapping of this project's that has *name* in a key."""
    found, seen, left = set(), set(), [root]
    while left:
        thing = left.pop()
        if id(thing) in seen or not type(thing).__module__.startswith("scheduler."):
            continue
        seen.add(id(thing))
        for attribute, value in attributes(thing):
            if isinstance(value, Mapping):
                left += value.values()
                if any(name == key or isinstance(key, tuple) and name in key for key in value):
                    found.add(attribute)
            else:
                left.append(value)
    return found


def attributes(thing: Any) -> Iterator[tuple[str, Any]]:
    yield from getattr(thing, "__dict__", {}).items()
    for cls in type(thing).__mro__:
        for name in getattr(cls, "__slots__", ()):
            if hasattr(thing, name):
                yield name, getattr(thing, name)


def come(fleet: Fleet, host: str) -> None:
    fleet.hosts.append(host)
    with fleet.database.write() as conn:
        services.create_many(conn, [host], "nova-compute", "compute", 74)
        service = services.get(conn, host, "nova-compute")
        services.heartbeat_many(conn, [service.id], fleet.now())
        compute_nodes.upsert(conn, host, host, fleet._report(0, 0))


def go(fleet: Fleet, host: str) -> None:
    fleet.hosts.remove(host)
    with fleet.database.write() as conn:
        table = tables.instances
        conn.execute(table.delete().where(table.c.host == host))
        delete_host(conn, host)


def test_nothing_stays_of_hosts_that_are_gone(fleet: Fleet, worker: Any) -> None:
    for host in list(fleet.hosts):
        fleet.fill(host)
    one = worker()
    manager = one.manager
    come(fleet, "passing")
    server = a_name()
    fleet.wait_for_host(server, 1024)
    assert one.hosts("req-1", 1024, server) == ["passing"]
    manager.update_service_capabilities("compute", "passing", {"a": 1})
    fleet.arrive(server, "passing")
    manager.refresh()
    assert {"rows", "services", "instances", "capabilities"} <= holders(manager, "passing")

    go(fleet, "passing")
    fleet.clock.ahead_seconds += 3600
    manager.refresh_everything()  # ends the claim
    manager.refresh_everything()
    assert holders(manager, "passing") <= KEPT
