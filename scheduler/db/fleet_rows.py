"""Queries for the rows that the host table is made of."""

import datetime
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from scheduler.db import rows, tables
from scheduler.db.services import COMPUTE_BINARY

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

_TABLE = tables.services
SERVICE_FLAGS = (_TABLE.c.disabled, _TABLE.c.forced_down)
LIVING_SERVICES = (_TABLE.c.binary == COMPUTE_BINARY, _TABLE.c.deleted == 0)


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


def living_services(connection: sa.Connection, ids: Collection[int] | None = None) -> Sequence[Any]:
    """Every living compute service by id, or those of these *ids*."""
    query = sa.select(*_TABLE.c).where(*LIVING_SERVICES).order_by(_TABLE.c.id)
    if ids is None:
        return connection.execute(query).all()
    return rows.select_in(connection, query, _TABLE.c.id, sorted(ids))


def of_topic(connection: sa.Connection, topic: str) -> Sequence[Any]:
    """Every living service of *topic*, whatever its state, by id."""
    query = sa.select(*_TABLE.c).where(_TABLE.c.topic == topic, _TABLE.c.deleted == 0)
    return connection.execute(query.order_by(_TABLE.c.id)).all()
