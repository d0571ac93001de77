"""Compute nodes by (host, hypervisor_hostname); columns, units: page database, 3.1 and 5."""

import datetime
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from oslo_log import log as logging
from sqlalchemy import Connection, RowMapping

from scheduler import errors, objects
from scheduler.db import rows
from scheduler.db.tables import compute_nodes

LOG = logging.getLogger(__name__)

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


def get(
    connection: Connection, host: str, node: str, *, for_update: bool = False
) -> objects.ComputeNode:
    """The living node; raises ComputeHostNotFound.  *for_update*: see :func:`rows.read`."""
    table = compute_nodes
    is_it = (table.c.host == host, table.c.hypervisor_hostname == node)
    found = rows.read(connection, table, *is_it, for_update=for_update)
    if not found:
        raise errors.ComputeHostNotFound(host=host)
    return _to_object(found[0])


def list_all(connection: Connection, host: str | None = None) -> list[objects.ComputeNode]:
    """Every living node in the order of the ids, or those of one *host*."""
    criteria = [] if host is None else [compute_nodes.c.host == host]
    return [_to_object(row) for row in rows.read(connection, compute_nodes, *criteria)]


def living_row(connection: Connection, host: str, node: str | None) -> Any:
    """The living row of one node, or of the first of the host; None if there is none."""
    table = compute_nodes
    query = sa.select(table).where(table.c.host == host, table.c.deleted == 0)
    if node:
        query = query.where(table.c.hypervisor_hostname == node)
    return connection.execute(query.order_by(table.c.id)).first()


def living_rows(
    connection: Connection, keys: Collection[tuple[str, str | None]] | None = None
) -> list[Any]:
    """The living rows of all compute nodes, or of those that are (host, node) in *keys*, by id."""
    table = compute_nodes
    query = sa.select(table).where(table.c.deleted == 0).order_by(table.c.id)
    if keys is None:
        return list(connection.execute(query))
    nodes = sorted({node for _host, node in keys if node is not None})
    found = rows.select_in(connection, query, table.c.hypervisor_hostname, nodes)
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


def _to_object(row: RowMapping) -> objects.ComputeNode:
    documents: dict[str, Any] = {}
    stats, triples = _read(row, "stats"), _read(row, "supported_instances")
    if stats is not None:
        documents["stats"] = stats
    if triples is not None:
        documents["supported_hv_specs"] = [objects.HVSpec.from_list(triple) for triple in triples]
    pools = objects.PciDevicePoolList.from_text(row["pci_stats"])
    columns = {name: value for name, value in row.items() if name != "stats"}
    return rows.to_object(objects.ComputeNode, columns, pci_device_pools=pools, **documents)


def _read(row: RowMapping, column: str) -> Any:
    """The JSON of one column; None when empty, and, with a warning, when it is no JSON."""
    try:
        return json.loads(row[column]) if row[column] else None
    except ValueError:
        LOG.warning(
            "Compute node %s of host %s: %s is not JSON, and ignored",
            row["hypervisor_hostname"],
            row["host"],
            column,
        )
        return None
