"""The rows of compute nodes and instances as the host table needs them."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from scheduler.db import tables

#: Rows of one round trip.
CHUNK = 500

NODE_COLUMNS = [
    tables.compute_nodes.c[name]
    for name in (
        *("id", "uuid", "host", "hypervisor_hostname", "deleted", "created_at", "updated_at"),
        *("deleted_at", "vcpus", "vcpus_used", "memory_mb", "memory_mb_used", "free_ram_mb"),
        *("local_gb", "local_gb_used", "free_disk_gb", "disk_available_least"),
        *("hypervisor_type", "hypervisor_version", "host_ip", "cpu_info", "supported_instances"),
        *("stats", "metrics", "pci_stats", "numa_topology"),
        *("cpu_allocation_ratio", "ram_allocation_ratio", "disk_allocation_ratio"),
    )
]
_INSTANCES = tables.instances.c
INSTANCE_COLUMNS = [
    _INSTANCES[name]
    for name in (
        *("id", "uuid", "host", "node", "project_id", "user_id", "instance_type_id", "vm_state"),
        *("task_state", "deleted", "created_at", "updated_at"),
    )
]
PLACED = sa.and_(_INSTANCES.deleted == 0, _INSTANCES.host.is_not(None))
"""Of instances: that they live on a host."""


def on_no_host(since: datetime.datetime) -> sa.ColumnElement[bool]:
    """Of instances: that they are deleted or on no host, and were touched since (naive UTC)."""
    stamps = (_INSTANCES.updated_at, _INSTANCES.created_at, _INSTANCES.deleted_at)
    return sa.and_(
        sa.or_(_INSTANCES.deleted != 0, _INSTANCES.host.is_(None)),
        sa.or_(*(each >= since for each in stamps)),
    )


def instances(connection: sa.Connection, which: sa.ColumnElement[bool]) -> Sequence[Any]:
    """All instances of that kind."""
    return connection.execute(sa.select(*INSTANCE_COLUMNS).where(which)).all()


def nodes_after(connection: sa.Connection, last: int) -> Sequence[Any]:
    """The next living compute nodes by id, after that of id *last*."""
    table = tables.compute_nodes
    query = sa.select(*NODE_COLUMNS).where(table.c.deleted == 0, table.c.id > last)
    return connection.execute(query.order_by(table.c.id).limit(CHUNK)).all()


def parts(ids: Iterable[int]) -> Iterator[list[int]]:
    """*ids* in order, in parts of one round trip."""
    ordered = sorted(ids)
    for start in range(0, len(ordered), CHUNK):
        yield ordered[start : start + CHUNK]
