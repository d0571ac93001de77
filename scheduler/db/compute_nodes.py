"""The compute nodes: what each hypervisor has and what of it is used.

A node is (host, hypervisor_hostname).  Columns, units and the JSON in them: reference page
database, sections 3.1 and 5.
"""

from __future__ import annotations

import datetime
import json
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from oslo_log import log as logging
from sqlalchemy import ColumnElement, Connection, RowMapping

from scheduler import errors, objects
from scheduler.db import rows
from scheduler.db.tables import compute_nodes

LOG = logging.getLogger(__name__)

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
    """The living node; raises ComputeHostNotFound.

    *for_update*: nobody else can change the row before this transaction ends.  SQLite needs no
    lock on the row: its write transactions exclude each other.
    """
    query = sa.select(compute_nodes).where(*_is(host, node), compute_nodes.c.deleted == 0)
    row = connection.execute(query.with_for_update() if for_update else query).mappings().first()
    if row is None:
        raise errors.ComputeHostNotFound(host=host)
    return _to_object(row)


def list_all(connection: Connection, host: str | None = None) -> list[objects.ComputeNode]:
    """Every living node in the order of the ids, or those of one *host*."""
    table = compute_nodes
    query = sa.select(table).where(table.c.deleted == 0).order_by(table.c.id)
    if host is not None:
        query = query.where(table.c.host == host)
    return [_to_object(row) for row in connection.execute(query).mappings()]


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


def upsert(connection: Connection, host: str, node: str, values: Mapping[str, Any]) -> int:
    """Insert the node or update the columns in *values*; return the row's id."""
    return upsert_many(connection, [{**values, "host": host, "hypervisor_hostname": node}])[0]


def upsert_many(connection: Connection, nodes: Sequence[Mapping[str, Any]]) -> list[int]:
    """Insert or update one row for each of *nodes* and return their ids, in the same order.

    Each has ``host``, ``hypervisor_hostname`` and columns with their values; lists, dicts and
    wire objects are stored as JSON.  A node that was deleted and comes back with its old uuid
    gets its old row back.
    """
    known = _known_ids(connection, nodes)
    new: list[dict[str, Any]] = []
    for node in nodes:
        values = {name: rows.to_column(value) for name, value in node.items()}
        row_id = known.get(_key(node)) or _deleted_id(connection, node.get("uuid"))
        if row_id is None:
            new.append({**DEFAULTS, "uuid": str(uuid.uuid4()), **values})
        else:
            alive = {"deleted": 0, "deleted_at": None}
            rows.update(connection, compute_nodes, compute_nodes.c.id == row_id, **values, **alive)
    for alike in _by_columns(new):
        with rows.unique("compute node", f"{alike[0]['host']}, or one of {len(alike)}"):
            rows.insert_many(connection, compute_nodes, alike)
    ids = _known_ids(connection, nodes)
    return [ids[_key(node)] for node in nodes]


def update_usage(
    connection: Connection,
    node_id: int,
    values: Mapping[str, Any],
    now: datetime.datetime | None = None,
) -> None:
    """Update columns of the living node with that id, at *now* (naive UTC, default: the clock).

    Raises ComputeHostNotFound when the node is gone.
    """
    columns = {name: rows.to_column(value) for name, value in values.items()}
    living = (compute_nodes.c.id == node_id, compute_nodes.c.deleted == 0)
    moment = now or rows.utcnow()
    if not rows.update(connection, compute_nodes, *living, **columns, updated_at=moment):
        raise errors.ComputeHostNotFound(host=f"with node id {node_id}")


def _is(host: str, node: str) -> tuple[ColumnElement[bool], ...]:
    return (compute_nodes.c.host == host, compute_nodes.c.hypervisor_hostname == node)


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


def _key(node: Mapping[str, Any]) -> tuple[str, str]:
    return node["host"], node["hypervisor_hostname"]


def _known_ids(
    connection: Connection, nodes: Iterable[Mapping[str, Any]]
) -> dict[tuple[str, str], int]:
    table = compute_nodes
    query = sa.select(table.c.host, table.c.hypervisor_hostname, table.c.id)
    hosts = sorted({node["host"] for node in nodes})
    found = rows.select_in(connection, query.where(table.c.deleted == 0), table.c.host, hosts)
    return {(host, node): number for host, node, number in found}


def _deleted_id(connection: Connection, node_uuid: str | None) -> int | None:
    if node_uuid is None:
        return None
    query = sa.select(compute_nodes.c.id).where(
        compute_nodes.c.uuid == node_uuid, compute_nodes.c.deleted != 0
    )
    return connection.execute(query).scalar()


def _by_columns(new: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The rows in groups that name the same columns: one statement inserts such a group."""
    groups: dict[frozenset[str], list[dict[str, Any]]] = {}
    for row in new:
        groups.setdefault(frozenset(row), []).append(row)
    return list(groups.values())
