"""The tables that belong to an instance: extra, metadata, system metadata, disks.

Reference page database, sections 3.4 to 3.6; JSON in ``instance_extra``: sections 5.7 to 5.9.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from scheduler import objects
from scheduler.db import rows
from scheduler.db.tables import (
    block_device_mapping,
    instance_extra,
    instance_faults,
    instance_metadata,
    instance_system_metadata,
)

PARTS = (
    instance_extra,
    instance_metadata,
    instance_system_metadata,
    block_device_mapping,
    instance_faults,
)


def insert(connection: Connection, instance: objects.Instance) -> None:
    """Write the parts of a new *instance* beside its own row."""
    rows.insert(connection, instance_extra, instance_uuid=instance.uuid, **_extra(instance))
    for table, texts in (
        (instance_metadata, instance.metadata),
        (instance_system_metadata, instance.system_metadata),
    ):
        pairs = [{"key": key, "value": value} for key, value in texts.items()]
        of_instance = [{**pair, "instance_uuid": instance.uuid} for pair in pairs]
        rows.insert_many(connection, table, of_instance)


def fill_in(connection: Connection, instances: Sequence[objects.Instance]) -> None:
    """Read the parts of *instances* into them."""
    by_uuid = {instance.uuid: instance for instance in instances}
    for instance in instances:
        instance.metadata, instance.system_metadata = {}, {}
    extra, metadata, system_metadata = (
        rows.select_in(
            connection,
            sa.select(table).where(table.c.deleted == 0),
            table.c.instance_uuid,
            list(by_uuid),
        )
        for table in (instance_extra, instance_metadata, instance_system_metadata)
    )
    for row in extra:
        _read_extra(by_uuid[row.instance_uuid], row)
    for row in metadata:
        by_uuid[row.instance_uuid].metadata[row.key] = row.value
    for row in system_metadata:
        by_uuid[row.instance_uuid].system_metadata[row.key] = row.value


def soft_delete(connection: Connection, instance_uuid: str) -> None:
    """Mark everything that belongs to the instance deleted."""
    for table in PARTS:
        rows.soft_delete(connection, table, table.c.instance_uuid == instance_uuid)


def flavor_column(
    current: objects.Flavor,
    old: objects.Flavor | None = None,
    new: objects.Flavor | None = None,
) -> str:
    """The flavors of an instance, of which the last two are only there while it is resized."""
    flavors = {"cur": current, "old": old, "new": new}
    return json.dumps(
        {
            name: None if flavor is None else objects.to_primitive(flavor)
            for name, flavor in flavors.items()
        }
    )


def _extra(instance: objects.Instance) -> dict[str, str | None]:
    flavors = (instance.flavor, instance.old_flavor, instance.new_flavor)
    requests = instance.pci_requests
    plain = None if requests is None else [objects.to_plain(one) for one in requests.requests]
    return {
        "flavor": flavor_column(*flavors) if instance.flavor is not None else None,
        "numa_topology": rows.to_column(instance.numa_topology),
        "pci_requests": rows.to_column(plain),
    }


def _read_extra(instance: objects.Instance, row: Any) -> None:
    if row.flavor:
        flavors = json.loads(row.flavor)
        instance.flavor = flavors["cur"]
        instance.old_flavor, instance.new_flavor = flavors.get("old"), flavors.get("new")
    instance.numa_topology = json.loads(row.numa_topology) if row.numa_topology else None
    instance.pci_requests = None
    if row.pci_requests:
        plain = {"instance_uuid": instance.uuid, "requests": json.loads(row.pci_requests)}
        instance.pci_requests = objects.InstancePCIRequests.from_dict(plain)
