"""Queries for the rows of compute nodes and instances that the host table needs."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from scheduler.db import rows, tables

#: Rows of one round trip.
CHUNK = 500
#: Keys of an instance's system metadata that hold properties of its image.
IMAGE_KEY_PREFIX = "image_"

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
"""Criterion of the instances that live on a host."""


def on_no_host(since: datetime.datetime) -> sa.ColumnElement[bool]:
    """Criterion of instances that are deleted or on no host, and were touched since (naive UTC)."""
    stamps = (_INSTANCES.updated_at, _INSTANCES.created_at, _INSTANCES.deleted_at)
    return sa.and_(
        sa.or_(_INSTANCES.deleted != 0, _INSTANCES.host.is_(None)),
        sa.or_(*(each >= since for each in stamps)),
    )


def instances(connection: sa.Connection, which: sa.ColumnElement[bool]) -> Sequence[Any]:
    """All instances that meet the criterion *which*."""
    return connection.execute(sa.select(*INSTANCE_COLUMNS).where(which)).all()


def nodes_after(connection: sa.Connection, last: int) -> Sequence[Any]:
    """The next living compute nodes by id, after that of id *last*."""
    table = tables.compute_nodes
    query = sa.select(*NODE_COLUMNS).where(table.c.deleted == 0, table.c.id > last)
    return connection.execute(query.order_by(table.c.id).limit(CHUNK)).all()


def by_ids(
    connection: sa.Connection, columns: Sequence[sa.ColumnElement[Any]], ids: Iterable[int]
) -> list[Any]:
    """The *columns* of the rows with these ids, in the order of the ids."""
    query = sa.select(*columns).order_by(columns[0])
    return rows.select_in(connection, query, columns[0], sorted(ids))


def hosts_of_group(connection: sa.Connection, group: str) -> Sequence[str]:
    """The host of each living instance whose system metadata names *group*, if it has one."""
    table, texts = tables.instances, tables.instance_system_metadata
    query = (
        sa.select(table.c.host)
        .join(texts, texts.c.instance_uuid == table.c.uuid)
        .where(texts.c.key == "group", texts.c.value == group, texts.c.deleted == 0)
        .where(table.c.deleted == 0, table.c.host.is_not(None))
        .order_by(table.c.id)
    )
    return connection.execute(query).scalars().all()


def image_properties(
    connection: sa.Connection, condition: sa.ColumnElement[bool]
) -> dict[str, dict[str, str | None]]:
    """By uuid the system metadata about images, of the instances that meet *condition*."""
    table = tables.instance_system_metadata
    is_of_image = table.c.key.startswith(IMAGE_KEY_PREFIX, autoescape=True)
    query = (
        sa.select(table.c.instance_uuid, table.c.key, table.c.value)
        .join(tables.instances, tables.instances.c.uuid == table.c.instance_uuid)
        .where(condition, table.c.deleted == 0, is_of_image)
    )
    found: dict[str, dict[str, str | None]] = {}
    for uuid, key, value in connection.execute(query):
        found.setdefault(uuid, {})[key] = value
    return found


def counters(connection: sa.Connection) -> frozenset[str]:
    """Names of the counters that triggers move; none in a database that Nova made."""
    table = tables.change_counters
    if not sa.inspect(connection).has_table(table.name):
        return frozenset()
    return frozenset(connection.execute(sa.select(table.c.name)).scalars())


def counter(name: str) -> sa.ScalarSelect[int]:
    """The value of one counter; NULL if it is gone."""
    table = tables.change_counters
    return sa.select(table.c.value).where(table.c.name == name).scalar_subquery()
