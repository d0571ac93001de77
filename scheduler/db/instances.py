"""Instances, their extra, metadata, disks, faults (page database, 3.3 to 3.6 and 5.7 to 5.9)."""

import json
from collections.abc import Collection, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Connection

from scheduler import errors, objects
from scheduler.db import rows
from scheduler.db.tables import (
    block_device_mapping,
    instance_extra,
    instance_faults,
    instance_metadata,
    instance_system_metadata,
    instances,
)

#: The bytes of UTF-8 that the column's 255 characters are sure to hold.
MESSAGE_BYTES = 255

#: No expectation: any value will do.
ANY: Any = object()

#: The columns of an instance that repeat those of its flavor.
FLAVOR_SIZES = ("memory_mb", "vcpus", "root_gb", "ephemeral_gb")

#: Values of a new row where the object has nothing: the application's defaults.
DEFAULTS = {
    "locked": False,
    "shutdown_terminate": False,
    "disable_terminate": False,
    "cleaned": 0,
    "hidden": False,
}


def create(connection: Connection, instance: objects.Instance) -> None:
    """Insert *instance* and its parts, set its ``id``; AlreadyExists, also for a deleted one."""
    values = {**DEFAULTS, **_columns(rows.to_columns(instance, instances))}
    with rows.unique("instance", instance.uuid):
        instance.id = rows.insert(connection, instances, **values)
    rows.insert(connection, instance_extra, instance_uuid=instance.uuid, **_extra(instance))
    for table, texts in (
        (instance_metadata, instance.metadata),
        (instance_system_metadata, instance.system_metadata),
    ):
        of_instance = {"instance_uuid": instance.uuid}
        pairs = [{**of_instance, "key": key, "value": value} for key, value in texts.items()]
        rows.insert_many(connection, table, pairs)


def get(connection: Connection, uuid: str) -> objects.Instance:
    """The living instance with all its parts; raises InstanceNotFound."""
    found = list_all(connection, uuids=[uuid])
    if not found:
        raise errors.InstanceNotFound(instance_id=uuid)
    return found[0]


def list_all(
    connection: Connection,
    *,
    host: str | None = None,
    uuids: Sequence[str] | None = None,
    parts: bool = True,
) -> list[objects.Instance]:
    """Living instances that meet every filter, by id; without *parts* these stay unset."""
    criteria = [] if host is None else [instances.c.host == host]
    if uuids is None:
        found = list(rows.read(connection, instances, *criteria))
    else:
        found = []
        for some in rows.in_batches(uuids):
            found += rows.read(connection, instances, instances.c.uuid.in_(some), *criteria)
    made = [rows.to_object(objects.Instance, row) for row in found]
    if parts:
        _read_parts(connection, made)
    return sorted(made, key=lambda instance: instance.id)


def rows_by_uuid(connection: Connection, uuids: Collection[str]) -> dict[str, Any]:
    """The instances with these uuids, deleted ones included."""
    found = rows.select_in(connection, sa.select(instances), instances.c.uuid, sorted(uuids))
    return {row.uuid: row for row in found}


def counts_by_node(connection: Connection) -> dict[tuple[str, str], int]:
    table = instances
    query = (
        sa.select(table.c.host, table.c.node, sa.func.count())
        .where(table.c.deleted == 0, table.c.host.is_not(None))
        .group_by(table.c.host, table.c.node)
    )
    return {(host, node or ""): count for host, node, count in connection.execute(query)}


def update(
    connection: Connection,
    uuid: str,
    *,
    expected_task_state: Any = ANY,
    expected_host: Any = ANY,
    **values: Any,
) -> bool:
    """Set columns of the living instance, if it is in the state expected; say whether it was.

    An expectation is a value (None for NULL) or a tuple of them, checked in the same statement
    that writes.  Raises InstanceNotFound when the instance is gone.
    """
    criteria = [instances.c.uuid == uuid, instances.c.deleted == 0]
    if expected_task_state is not ANY:
        criteria.append(_is_one_of(instances.c.task_state, expected_task_state))
    if expected_host is not ANY:
        criteria.append(_is_one_of(instances.c.host, expected_host))
    if rows.update(connection, instances, *criteria, **_columns(values)):
        return True
    if not rows.read(connection, instances, instances.c.uuid == uuid):
        raise errors.InstanceNotFound(instance_id=uuid)
    return False


def destroy(connection: Connection, uuid: str) -> None:
    """Soft-delete the instance and everything that belongs to it; raises InstanceNotFound."""
    if not rows.soft_delete(connection, instances, instances.c.uuid == uuid):
        raise errors.InstanceNotFound(instance_id=uuid)
    for table in (
        *(instance_extra, instance_metadata, instance_system_metadata),
        *(block_device_mapping, instance_faults),
    ):
        rows.soft_delete(connection, table, table.c.instance_uuid == uuid)


def set_system_metadata(
    connection: Connection, instance_uuid: str, key: str, value: str | None
) -> None:
    table = instance_system_metadata
    criteria = (table.c.instance_uuid == instance_uuid, table.c.key == key, table.c.deleted == 0)
    if not rows.update(connection, table, *criteria, value=value):
        rows.insert(connection, table, instance_uuid=instance_uuid, key=key, value=value)


def homes_by_system_metadata(connection: Connection, key: str, value: str) -> dict[str, str | None]:
    """The host of each living instance whose system metadata has *value* under *key*."""
    texts = instance_system_metadata
    query = (
        sa.select(instances.c.uuid, instances.c.host)
        .join(texts, texts.c.instance_uuid == instances.c.uuid)
        .where(texts.c.key == key, texts.c.value == value, texts.c.deleted == 0)
        .where(instances.c.deleted == 0)
    )
    return {uuid: host for uuid, host in connection.execute(query.order_by(instances.c.id))}


def add_fault(
    connection: Connection,
    instance_uuid: str,
    code: int,
    message: str,
    details: str = "",
    host: str | None = None,
) -> None:
    """Write a fault; *message* is cut to 255 bytes of UTF-8 (reference page conductor, 6)."""
    rows.insert(
        connection,
        instance_faults,
        instance_uuid=instance_uuid,
        code=code,
        message=message.encode("utf-8")[:MESSAGE_BYTES].decode("utf-8", "ignore"),
        details=details,
        host=host,
    )


def latest_faults(connection: Connection, instance_uuids: Sequence[str]) -> dict[str, Any]:
    """The row of the newest fault of each of the instances that have one, by uuid."""
    table = instance_faults
    living = sa.select(table).where(table.c.deleted == 0)
    query = living.order_by(table.c.created_at, table.c.id)
    found = rows.select_in(connection, query, table.c.instance_uuid, instance_uuids)
    # Later rows replace earlier ones.
    return {row.instance_uuid: row for row in found}


def flavor_column(
    current: objects.Flavor, old: objects.Flavor | None = None, new: objects.Flavor | None = None
) -> dict[str, Any]:
    """The flavors of an instance, of which the last two are only there while it is resized."""
    flavors = {"cur": current, "old": old, "new": new}
    return {
        name: None if flavor is None else objects.to_primitive(flavor)
        for name, flavor in flavors.items()
    }


def _read_parts(connection: Connection, several: Sequence[objects.Instance]) -> None:
    extra, metadata, system_metadata = (
        rows.children(connection, table, "instance_uuid", [each.uuid for each in several])
        for table in (instance_extra, instance_metadata, instance_system_metadata)
    )
    for each in several:
        each.metadata = {row.key: row.value for row in metadata[each.uuid]}
        each.system_metadata = {row.key: row.value for row in system_metadata[each.uuid]}
        for row in extra[each.uuid]:
            flavors = json.loads(row.flavor) if row.flavor else {}
            if flavors:
                each.flavor = flavors["cur"]
                each.old_flavor, each.new_flavor = flavors.get("old"), flavors.get("new")
            each.numa_topology = json.loads(row.numa_topology) if row.numa_topology else None
            each.pci_requests = None
            if row.pci_requests:
                plain = {"instance_uuid": each.uuid, "requests": json.loads(row.pci_requests)}
                each.pci_requests = objects.InstancePCIRequests.from_dict(plain)


def _extra(instance: objects.Instance) -> dict[str, Any]:
    flavors = (instance.flavor, instance.old_flavor, instance.new_flavor)
    requests = instance.pci_requests
    plain = None if requests is None else [objects.to_plain(one) for one in requests.requests]
    return {
        "flavor": flavor_column(*flavors) if instance.flavor is not None else None,
        "numa_topology": instance.numa_topology,
        "pci_requests": plain,
    }


def _columns(values: dict[str, Any]) -> dict[str, Any]:
    # The object's "cleaned" is a truth value, the column a number; PostgreSQL minds.
    return {**values, "cleaned": int(values["cleaned"])} if values.get("cleaned") else values


def _is_one_of(column: ColumnElement[Any], expected: Any) -> ColumnElement[bool]:
    allowed = expected if isinstance(expected, tuple) else (expected,)
    conditions = [column.in_([value for value in allowed if value is not None])]
    if None in allowed:
        conditions.append(column.is_(None))
    return sa.or_(*conditions)
