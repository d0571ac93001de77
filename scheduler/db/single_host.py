"""The rows that tell how full one host is, for who looks at no other."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from scheduler.db import rows
from scheduler.db.tables import compute_nodes, instances


def report(connection: Connection, host: str, node: str | None) -> Any:
    """The living row of the compute node, None if there is none."""
    table = compute_nodes
    query = sa.select(table).where(table.c.host == host, table.c.deleted == 0)
    if node:
        query = query.where(table.c.hypervisor_hostname == node)
    return connection.execute(query.order_by(table.c.id)).first()


def instances_of(connection: Connection, uuids: Collection[str]) -> dict[str, Any]:
    """The instances with these uuids, deleted ones included."""
    found: dict[str, Any] = {}
    for some in rows.in_batches(sorted(uuids)):
        query = sa.select(instances).where(instances.c.uuid.in_(some))
        found.update({row.uuid: row for row in connection.execute(query)})
    return found


def reports(
    connection: Connection, keys: Collection[tuple[str, str | None]] | None = None
) -> list[Any]:
    """The living rows of all compute nodes, or of those that are (host, node) in *keys*, by id."""
    table = compute_nodes
    query = sa.select(table).where(table.c.deleted == 0).order_by(table.c.id)
    if keys is None:
        return list(connection.execute(query))
    found: list[Any] = []
    nodes = sorted({node for _host, node in keys if node is not None})
    for some in rows.in_batches(nodes):
        query_of_some = query.where(table.c.hypervisor_hostname.in_(some))
        found.extend(connection.execute(query_of_some))
    return [row for row in found if (row.host, row.hypervisor_hostname) in keys]


def instance_counts(connection: Connection) -> dict[tuple[str, str], int]:
    """How many living instances are on each (host, node)."""
    table = instances
    query = (
        sa.select(table.c.host, table.c.node, sa.func.count())
        .where(table.c.deleted == 0, table.c.host.is_not(None))
        .group_by(table.c.host, table.c.node)
    )
    return {(host, node or ""): count for host, node, count in connection.execute(query)}
