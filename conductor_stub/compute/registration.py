"""The rows that make compute hosts known: services, nodes, aggregates (page database, 3.1, 3.2)."""

import datetime
from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from conductor_stub.compute.profiles import HostPlan, merged_aggregates
from scheduler import objects
from scheduler.db import aggregates, rows, services
from scheduler.db.tables import compute_nodes
from scheduler.db.tables import services as services_table

TOPIC: Final = "compute"
DISABLED: Final[Mapping[str, Any]] = {
    "disabled": True,
    "disabled_reason": "New compute service disabled due to config option.",
}
"""A new service where ``enable_new_services`` is off."""
#: Values of a new node where its host gives nothing: the application's defaults.
NODE_DEFAULTS: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("vcpus_used", "memory_mb_used", "local_gb_used", "mapped"), 0),
    "cpu_info": "",
    "stats": "{}",
}


def put_services(
    conn: Connection, hosts: Sequence[str], version: int, **if_new: Any
) -> dict[str, int]:
    """Insert or renew the compute service of each of *hosts*; the ids of the rows by host."""
    values = {"binary": services.COMPUTE_BINARY, "topic": TOPIC, "version": version}
    several = [{"host": host, **values} for host in hosts]
    ids = _put(conn, services_table, ("host", "binary"), several, {**services.DEFAULTS, **if_new})
    return dict(zip(hosts, ids, strict=True))


def put_nodes(conn: Connection, nodes: Sequence[Mapping[str, Any]]) -> list[int]:
    """Insert or update the rows of *nodes*, which are columns with values; their ids."""
    return _put(conn, compute_nodes, ("host", "hypervisor_hostname"), nodes, NODE_DEFAULTS)


def _put(
    conn: Connection,
    table: sa.Table,
    key: tuple[str, str],
    several: Sequence[Mapping[str, Any]],
    defaults: Mapping[str, Any],
) -> list[int]:
    """Update living rows by *key*, or insert them with *defaults*; the ids of all *several*.

    Raises AlreadyExists when another process inserts one of them at the same moment: call again.
    """
    first, second = (table.c[name] for name in key)
    query = sa.select(first, second, table.c.id).where(table.c.deleted == 0)
    keys = [(row[key[0]], row[key[1]]) for row in several]
    names = sorted({each for each, _ in keys})

    def ids() -> dict[tuple[str, str], int]:
        return {(row[0], row[1]): row.id for row in rows.select_in(conn, query, first, names)}

    known, new = ids(), []
    for each, row in zip(keys, several, strict=True):
        if each in known:
            rows.update(conn, table, table.c.id == known[each], **row)
        else:
            new.append({**defaults, **row})
    with rows.unique(table.name, f"one of {len(new)}"):
        rows.insert_many(conn, table, new)
    known = ids()
    return [known[each] for each in keys]


def update_node(
    conn: Connection, node_id: int, values: Mapping[str, Any], now: datetime.datetime | None = None
) -> None:
    """Update columns of a living node, at *now* (naive UTC)."""
    living = (compute_nodes.c.id == node_id, compute_nodes.c.deleted == 0)
    rows.update(conn, compute_nodes, *living, **values, updated_at=now or rows.utcnow())


def register_aggregates(conn: Connection, plans: Sequence[HostPlan]) -> list[objects.Aggregate]:
    """Complete the plans' aggregates and their hosts; the aggregates that changed."""
    changed = []
    known = {aggregate.name: aggregate for aggregate in aggregates.list_all(conn)}
    for name, metadata in merged_aggregates(plans).items():
        hosts = [plan.name for plan in plans if name in plan.aggregates]
        aggregate = known.get(name)
        if aggregate is None:
            changed.append(aggregates.create(conn, name, metadata, hosts))
            continue
        present = aggregate.metadata or {}
        news = {key: value for key, value in metadata.items() if present.get(key) != value}
        missing = [host for host in hosts if host not in (aggregate.hosts or [])]
        if news:
            aggregates.set_metadata(conn, aggregate.id, news)
        for host in missing:
            aggregates.add_host(conn, aggregate.id, host)
        if news or missing:
            changed.append(aggregates.get(conn, aggregate.id))
    return changed
