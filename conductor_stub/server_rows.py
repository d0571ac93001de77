"""Rows of servers beside their instances: disks, wishes of their users, cells, faults.

Reference page database, sections 3.5, 4, 5.10 and 7, and page conductor, section 6.
"""

import json
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from scheduler import errors, objects
from scheduler.db import instances, rows
from scheduler.db.databases import CELL0_UUID, list_cells
from scheduler.db.tables import (
    block_device_mapping,
    build_requests,
    host_mappings,
    instance_mappings,
)

ATTEMPTS_KEY = "nova_scheduler_attempts"
"""The key of the system metadata under which the number of attempts is kept for operators."""
#: Values of a new disk where the object has nothing: the application's defaults.
DISK_DEFAULTS = {"delete_on_termination": False, "no_device": False, "encrypted": False}


def create_disks(connection: Connection, disks: Iterable[objects.BlockDeviceMapping]) -> None:
    """Insert *disks*, whose ``instance_uuid`` is set; set their ``id``, and ``uuid`` if unset.

    Raises AlreadyExists when one of their uuids is taken.
    """
    for disk in disks:
        if disk.uuid is None:
            disk.uuid = str(uuid.uuid4())
        values = {**DISK_DEFAULTS, **rows.to_columns(disk, block_device_mapping)}
        with rows.unique("block device", disk.uuid):
            disk.id = rows.insert(connection, block_device_mapping, **values)


def disks_of(connection: Connection, instance_uuid: str) -> objects.BlockDeviceMappingList:
    """The living disks of the instance, in the order they were made."""
    table = block_device_mapping
    found = rows.read(connection, table, table.c.instance_uuid == instance_uuid)
    return objects.BlockDeviceMappingList(
        objects=[rows.to_object(objects.BlockDeviceMapping, row) for row in found]
    )


def create_build_request(
    connection: Connection,
    instance: objects.Instance,
    disks: objects.BlockDeviceMappingList | None = None,
) -> objects.BuildRequest:
    """Insert the request for *instance*, and its mapping to no cell yet; raises AlreadyExists."""
    wanted = objects.BuildRequest(
        instance_uuid=instance.uuid,
        project_id=instance.project_id,
        instance=instance,
        block_device_mappings=disks or objects.BlockDeviceMappingList(objects=[]),
    )
    with rows.unique("build request of instance", instance.uuid):
        rows.insert(connection, build_requests, **wanted.set_fields())
        rows.insert(
            connection,
            instance_mappings,
            instance_uuid=instance.uuid,
            project_id=instance.project_id,
            user_id=instance.user_id,
            queued_for_delete=False,
        )
    return wanted


def list_build_requests(
    connection: Connection, uuids: Sequence[str] | None = None
) -> list[objects.BuildRequest]:
    """The requests for those instances, or all, in the order of the ids."""
    table = build_requests
    query = sa.select(table.c.instance, table.c.block_device_mappings).order_by(table.c.id)
    if uuids is not None:
        query = query.where(table.c.instance_uuid.in_(uuids))
    found = []
    for row in connection.execute(query):
        instance = objects.from_primitive(json.loads(row.instance))
        disks = objects.from_primitive(json.loads(row.block_device_mappings or "null"))
        found.append(
            objects.BuildRequest(
                instance_uuid=instance.uuid,
                project_id=instance.project_id,
                instance=instance,
                block_device_mappings=disks or objects.BlockDeviceMappingList(objects=[]),
            )
        )
    return found


def delete_build_request(connection: Connection, instance_uuid: str) -> bool:
    """Delete the request; False when it is gone: the user deleted it."""
    criterion = build_requests.c.instance_uuid == instance_uuid
    return connection.execute(build_requests.delete().where(criterion)).rowcount > 0


def first_cell(connection: Connection) -> objects.CellMapping:
    """The first enabled cell that is not cell0; raises DatabaseNotReady when there is none."""
    for cell in list_cells(connection):
        if cell.uuid != CELL0_UUID and not cell.disabled:
            return cell
    raise errors.DatabaseNotReady(reason="there is no enabled cell in cell_mappings")


def cell0(connection: Connection) -> objects.CellMapping:
    """The cell of instances without a host; raises DatabaseNotReady when there is none."""
    for cell in list_cells(connection):
        if cell.uuid == CELL0_UUID:
            return cell
    raise errors.DatabaseNotReady(reason="there is no cell0 in cell_mappings")


def get_instance_mapping(connection: Connection, instance_uuid: str) -> Any:
    """The row of that instance, or None; ``cell_id`` is None until it has been scheduled."""
    table = instance_mappings
    query = sa.select(table).where(table.c.instance_uuid == instance_uuid)
    return connection.execute(query).first()


def set_instance_cell(connection: Connection, instance_uuid: str, cell_id: int) -> bool:
    """Note the cell that the instance was scheduled to; False when it has no mapping."""
    criterion = instance_mappings.c.instance_uuid == instance_uuid
    return rows.update(connection, instance_mappings, criterion, cell_id=cell_id) > 0


def delete_instance_mapping(connection: Connection, instance_uuid: str) -> bool:
    """Delete the mapping of that instance; False when it had none."""
    criterion = instance_mappings.c.instance_uuid == instance_uuid
    return connection.execute(instance_mappings.delete().where(criterion)).rowcount > 0


def get_host_mapping(connection: Connection, host: str) -> Any:
    """The row of that host, or None."""
    query = sa.select(host_mappings).where(host_mappings.c.host == host)
    return connection.execute(query).first()


def create_host_mappings(
    connection: Connection, hosts: Iterable[str], cell_id: int | None = None
) -> None:
    """Map those of *hosts* that have no mapping yet to the cell, by default :func:`first_cell`.

    Raises AlreadyExists when another process maps one of them at the same moment: call again.
    """
    wanted = list(dict.fromkeys(hosts))
    query = sa.select(host_mappings.c.host)
    known = {row.host for row in rows.select_in(connection, query, host_mappings.c.host, wanted)}
    new = [host for host in wanted if host not in known]
    if new:
        cell_id = first_cell(connection).id if cell_id is None else cell_id
        with rows.unique("mapping of host", f"{new[0]}, or one of {len(new)}"):
            cells = [{"host": host, "cell_id": cell_id} for host in new]
            rows.insert_many(connection, host_mappings, cells)


def add_fault(conn: Connection, uuid: str, error: BaseException, host: str) -> None:
    """Note *error*, met on *host*, as a fault of the instance."""
    fault = errors.Fault.from_error(error)
    instances.add_fault(conn, uuid, fault.code, fault.message, fault.details, host)


def end_build(
    api: Connection, cell: Connection, uuid: str, error: BaseException, host: str, attempts: int
) -> None:
    """Write *error* as the end of the build; raises InstanceNotFound when it is gone."""
    instances.update(cell, uuid, vm_state="error", task_state=None)
    add_fault(cell, uuid, error, host)
    instances.set_system_metadata(cell, uuid, ATTEMPTS_KEY, str(attempts))
    instances.set_system_metadata(cell, uuid, "network_allocated", "False")
    delete_build_request(api, uuid)
