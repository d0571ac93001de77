"""Compute nodes by (host, hypervisor_hostname); columns, units: page database, 3.1 and 5."""

from collections.abc import Collection, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from scheduler.db import rows
from scheduler.db.tables import compute_nodes

_LIVING = sa.select(compute_nodes).where(compute_nodes.c.deleted == 0).order_by(compute_nodes.c.id)


def list_all(
    connection: Connection, host: str | None = None, node: str | None = None
) -> Sequence[Any]:
    """The rows of all living nodes by id, or of those on *host* or called *node*."""
    names = {compute_nodes.c.host: host, compute_nodes.c.hypervisor_hostname: node}
    query = _LIVING.where(*(column == name for column, name in names.items() if name is not None))
    return connection.execute(query).all()


def living_rows(connection: Connection, keys: Collection[tuple[str, str | None]]) -> list[Any]:
    """The living rows of the compute nodes that are (host, node) in *keys*, by id."""
    nodes = sorted({node for _host, node in keys if node is not None})
    found = rows.select_in(connection, _LIVING, compute_nodes.c.hypervisor_hostname, nodes)
    return [row for row in found if (row.host, row.hypervisor_hostname) in keys]
