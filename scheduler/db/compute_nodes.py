"""Compute nodes by (host, hypervisor_hostname); columns, units: page database, 3.1 and 5."""

import datetime
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from scheduler import errors
from scheduler.db import rows
from scheduler.db.tables import compute_nodes

#: The columns that tell a living node from all others.
KEY = ("host", "hypervisor_hostname")
#: Values of a new row where the caller gives nothing: the application's defaults.
DEFAULTS: Mapping[str, Any] = {
    "vcpus_used": 0,
    "memory_mb_used": 0,
    "local_gb_used": 0,
    "cpu_info": "",
    "stats": "{}",
    "mapped": 0,
}


_LIVING = sa.select(compute_nodes).where(compute_nodes.c.deleted == 0).order_by(compute_nodes.c.id)


def list_all(
    connection: Connection,
    host: str | None = None,
    node: str | None = None,
    *,
    for_update: bool = False,
) -> Sequence[Any]:
    """The rows of all living nodes by id, or of those on *host* or called *node*.

    *for_update*: nobody else can change them before this transaction ends.  SQLite needs no lock
    on rows: its write transactions exclude each other.
    """
    names = {compute_nodes.c.host: host, compute_nodes.c.hypervisor_hostname: node}
    query = _LIVING.where(*(column == name for column, name in names.items() if name is not None))
    return connection.execute(query.with_for_update() if for_update else query).all()


def living_rows(connection: Connection, keys: Collection[tuple[str, str | None]]) -> list[Any]:
    """The living rows of the compute nodes that are (host, node) in *keys*, by id."""
    nodes = sorted({node for _host, node in keys if node is not None})
    found = rows.select_in(connection, _LIVING, compute_nodes.c.hypervisor_hostname, nodes)
    return [row for row in found if (row.host, row.hypervisor_hostname) in keys]


def upsert_many(connection: Connection, nodes: Sequence[Mapping[str, Any]]) -> list[int]:
    """Insert or update one row for each of *nodes* and return their ids, in the same order.

    Each has ``host``, ``hypervisor_hostname`` and columns with their values; lists, dicts and
    wire objects are stored as JSON.  A node that was deleted and comes back with its old uuid
    gets its old row back.
    """
    for node in nodes:
        was_deleted = (compute_nodes.c.uuid == node.get("uuid"), compute_nodes.c.deleted != 0)
        if node.get("uuid") is not None:
            alive = {**{name: node[name] for name in KEY}, "deleted": 0, "deleted_at": None}
            rows.update(connection, compute_nodes, *was_deleted, **alive)
    with rows.unique("compute node", f"one of {len(nodes)}"):
        return rows.upsert_many(connection, compute_nodes, KEY, nodes, DEFAULTS)


def update_usage(
    connection: Connection,
    node_id: int,
    values: Mapping[str, Any],
    now: datetime.datetime | None = None,
) -> None:
    """Update columns of a living node, at *now* (naive UTC); raises ComputeHostNotFound."""
    living = (compute_nodes.c.id == node_id, compute_nodes.c.deleted == 0)
    moment = now or rows.utcnow()
    if not rows.update(connection, compute_nodes, *living, **values, updated_at=moment):
        raise errors.ComputeHostNotFound(host=f"with node id {node_id}")
