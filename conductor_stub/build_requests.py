"""The build requests: servers asked for and not yet given to a host (database page, 4 and 5.10)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from scheduler import errors, objects
from scheduler.db import rows
from scheduler.db.tables import build_requests


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """One row: the instance as it was asked for, with its disks."""

    id: int
    project_id: str
    instance: objects.Instance
    block_device_mappings: objects.BlockDeviceMappingList


def create(
    connection: Connection,
    instance: objects.Instance,
    block_device_mappings: objects.BlockDeviceMappingList | None = None,
) -> int:
    """Insert the request for *instance* and return its id; raises AlreadyExists."""
    devices = block_device_mappings or objects.BlockDeviceMappingList(objects=[])
    with rows.unique("build request of instance", instance.uuid):
        return rows.insert(
            connection,
            build_requests,
            project_id=instance.project_id,
            instance_uuid=instance.uuid,
            instance=instance,
            block_device_mappings=devices,
        )


def get(connection: Connection, instance_uuid: str) -> BuildRequest:
    """The request for that instance; raises BuildRequestNotFound."""
    row = connection.execute(_all().where(build_requests.c.instance_uuid == instance_uuid)).first()
    if row is None:
        raise errors.BuildRequestNotFound(uuid=instance_uuid)
    return _read(row)


def list_all(connection: Connection) -> list[BuildRequest]:
    """Every request, in the order of the ids."""
    return [_read(row) for row in connection.execute(_all().order_by(build_requests.c.id))]


def destroy(connection: Connection, instance_uuid: str) -> None:
    """Delete the request; raises BuildRequestNotFound when it is gone: the user deleted it."""
    criterion = build_requests.c.instance_uuid == instance_uuid
    if not connection.execute(build_requests.delete().where(criterion)).rowcount:
        raise errors.BuildRequestNotFound(uuid=instance_uuid)


def _all() -> sa.Select[Any]:
    table = build_requests
    return sa.select(
        table.c.id, table.c.project_id, table.c.instance, table.c.block_device_mappings
    )


def _read(row: Any) -> BuildRequest:
    devices = objects.BlockDeviceMappingList(objects=[])
    if row.block_device_mappings:
        devices = objects.from_primitive(json.loads(row.block_device_mappings))
    instance = objects.from_primitive(json.loads(row.instance))
    return BuildRequest(row.id, row.project_id, instance, devices)
