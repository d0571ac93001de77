"""The disks of the instances (reference page database, section 3.5)."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from sqlalchemy import Connection

from scheduler import objects
from scheduler.db import rows
from scheduler.db.tables import block_device_mapping

#: Values of a new row where the object has nothing: the application's defaults.
DEFAULTS = {"delete_on_termination": False, "no_device": False, "encrypted": False}


def create(connection: Connection, devices: Iterable[objects.BlockDeviceMapping]) -> None:
    """Insert *devices*, whose ``instance_uuid`` is set; set their ``id``, and ``uuid`` if unset.

    Raises AlreadyExists when one of their uuids is taken.
    """
    for device in devices:
        if device.uuid is None:
            device.uuid = str(uuid.uuid4())
        values = {**DEFAULTS, **rows.to_columns(device, block_device_mapping)}
        with rows.unique("block device", device.uuid):
            device.id = rows.insert(connection, block_device_mapping, **values)


def of_instance(connection: Connection, instance_uuid: str) -> objects.BlockDeviceMappingList:
    """The living disks of the instance, in the order they were made."""
    table = block_device_mapping
    found = rows.read(connection, table, table.c.instance_uuid == instance_uuid)
    made = [rows.to_object(objects.BlockDeviceMapping, row) for row in found]
    return objects.BlockDeviceMappingList(objects=made)
