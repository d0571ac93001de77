"""Rows of servers: instances, groups, disks, wishes of their users, zones, faults.

Reference pages database, sections 3.5 and 5.10, and conductor, sections 5 (steps 6.3 to 6.8), 6.
"""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from oslo_log import log as logging
from sqlalchemy import Connection

from conductor_stub import wire_objects
from scheduler import errors, objects
from scheduler.db import aggregates, groups, instances, rows, services
from scheduler.db.tables import (
    block_device_mapping,
    build_requests,
    instance_extra,
    instance_faults,
    instance_group_member,
    instance_groups,
    instance_metadata,
    instance_system_metadata,
)
from scheduler.db.tables import instances as instances_table

LOG = logging.getLogger(__name__)

API_BINARY = "nova-osapi_compute"
FIRST_API_WITH_BUILD_REQUESTS = 12
"""The services.version from which on the API deletes a build request to cancel a build."""
ATTEMPTS_KEY = "nova_scheduler_attempts"
"""The key of the system metadata under which the number of attempts is kept for operators."""
#: Values of a new instance where the object has nothing: the application's defaults.
INSTANCE_DEFAULTS = {
    **dict.fromkeys(("locked", "shutdown_terminate", "disable_terminate", "hidden"), False),
    "cleaned": 0,
}
#: The columns of an instance that repeat those of its flavor.
FLAVOR_SIZES = ("memory_mb", "vcpus", "root_gb", "ephemeral_gb")
#: Values of a new disk where the object has nothing: the application's defaults.
DISK_DEFAULTS = {"delete_on_termination": False, "no_device": False, "encrypted": False}


def create_instance(connection: Connection, instance: objects.Instance) -> None:
    """Insert *instance* and its parts, set its ``id``; AlreadyExists, also for a deleted one."""
    columns = rows.to_columns(instance, instances_table)
    columns["cleaned"] = int(instance.cleaned or 0)  # no truth value; PostgreSQL minds
    with rows.unique("instance", instance.uuid):
        instance.id = rows.insert(connection, instances_table, **{**INSTANCE_DEFAULTS, **columns})
    rows.insert(
        connection,
        instance_extra,
        instance_uuid=instance.uuid,
        flavor=flavor_column(instance.flavor) if instance.flavor is not None else None,
        numa_topology=instance.numa_topology,
        pci_requests=devices_column(instance.pci_requests),
    )
    for table, texts in (
        (instance_metadata, instance.metadata),
        (instance_system_metadata, instance.system_metadata),
    ):
        of_instance = {"instance_uuid": instance.uuid}
        pairs = [{**of_instance, "key": key, "value": value} for key, value in texts.items()]
        rows.insert_many(connection, table, pairs)


def flavor_column(flavor: objects.Flavor) -> dict[str, Any]:
    """The flavors of an instance, of which the last two are only there while Nova resizes it."""
    return {"cur": flavor.obj_to_primitive(), "old": None, "new": None}


def devices_column(wanted: objects.InstancePCIRequests | None) -> list[dict[str, Any]] | None:
    """The devices that an instance wants, as a plain list."""
    return None if wanted is None else [objects.to_plain(each) for each in wanted.requests]


def update_if(conn: Connection, uuid: str, expected: Mapping[str, Any], **values: Any) -> bool:
    """Set columns of the living instance, if it is in the state expected; say whether it was.

    *expected* has a value (None for NULL) or a tuple of them by column, checked in the same
    statement that writes.  Raises InstanceNotFound.
    """
    table = instances_table
    criteria = [table.c.uuid == uuid, table.c.deleted == 0]
    for name, value in expected.items():
        allowed = value if isinstance(value, tuple) else (value,)
        criteria.append(sa.or_(*(table.c[name] == each for each in allowed)))
    if rows.update(conn, table, *criteria, **values):
        return True
    instances.get(conn, uuid)
    return False


def destroy_instance(connection: Connection, uuid: str) -> None:
    """Soft-delete the instance and everything that belongs to it; raises InstanceNotFound."""
    parts = (instance_extra, instance_metadata, instance_system_metadata, instance_faults)
    for table in (instances_table, block_device_mapping, *parts):
        column = table.c.uuid if table is instances_table else table.c.instance_uuid
        end = {"deleted": table.c.id, "deleted_at": rows.utcnow()}
        found = rows.update(connection, table, column == uuid, table.c.deleted == 0, **end)
        if table is instances_table and not found:
            raise errors.InstanceNotFound(instance_id=uuid)


def latest_faults(connection: Connection, instance_uuids: Sequence[str]) -> dict[str, Any]:
    """The row of the newest fault of each of the instances that have one, by uuid."""
    table = instance_faults
    living = sa.select(table).where(table.c.deleted == 0)
    query = living.order_by(table.c.created_at, table.c.id)
    found = rows.select_in(connection, query, table.c.instance_uuid, instance_uuids)
    # Later rows replace earlier ones.
    return {row.instance_uuid: row for row in found}


def group_of(conn: Connection, instance_uuid: str) -> objects.InstanceGroup | None:
    """The group that the instance is a member of."""
    member = instance_group_member
    ids = sa.select(member.c.group_id).where(member.c.instance_uuid == instance_uuid)
    return next(iter(groups.list_all(conn, instance_groups.c.id.in_(ids))), None)


def join_group(conn: Connection, group_uuid: str, instance_uuids: Iterable[str]) -> None:
    """Make the instances, which are no members yet, members; raises InstanceGroupNotFound."""
    group = groups.get(conn, group_uuid)
    rows.update(conn, instance_groups, instance_groups.c.id == group.id)  # it has changed
    members = [{"group_id": group.id, "instance_uuid": each} for each in instance_uuids]
    rows.insert_many(conn, instance_group_member, members)


def create_disks(connection: Connection, disks: Iterable[wire_objects.BlockDeviceMapping]) -> None:
    """Insert *disks*, whose ``instance_uuid`` is set; set their ``id``, and ``uuid`` if unset.

    Raises AlreadyExists when one of their uuids is taken.
    """
    for disk in disks:
        if disk.uuid is None:
            disk.uuid = str(uuid.uuid4())
        values = {**DISK_DEFAULTS, **rows.to_columns(disk, block_device_mapping)}
        with rows.unique("block device", disk.uuid):
            disk.id = rows.insert(connection, block_device_mapping, **values)


def disks_of(connection: Connection, instance_uuid: str) -> wire_objects.BlockDeviceMappingList:
    """The living disks of the instance, in the order they were made."""
    table = block_device_mapping
    found = rows.read(connection, table, table.c.instance_uuid == instance_uuid)
    return wire_objects.BlockDeviceMappingList(
        objects=[rows.to_object(wire_objects.BlockDeviceMapping, row) for row in found]
    )


def create_build_request(
    connection: Connection,
    instance: objects.Instance,
    disks: wire_objects.BlockDeviceMappingList | None = None,
) -> wire_objects.BuildRequest:
    """Insert the request for *instance*; raises AlreadyExists."""
    wanted = _build_request(instance, disks)
    with rows.unique("build request of instance", instance.uuid):
        rows.insert(connection, build_requests, **wanted.set_fields())
    return wanted


def list_build_requests(
    connection: Connection, uuids: Sequence[str] | None = None
) -> list[wire_objects.BuildRequest]:
    """The requests for those instances, or all, in the order of the ids."""
    table = build_requests
    query = sa.select(table.c.instance, table.c.block_device_mappings).order_by(table.c.id)
    if uuids is not None:
        query = query.where(table.c.instance_uuid.in_(uuids))
    found = [[json.loads(text or "null") for text in row] for row in connection.execute(query)]
    return [
        _build_request(objects.from_primitive(instance), disks and objects.from_primitive(disks))
        for instance, disks in found
    ]


def _build_request(
    instance: objects.Instance, disks: wire_objects.BlockDeviceMappingList | None
) -> wire_objects.BuildRequest:
    return wire_objects.BuildRequest(
        instance_uuid=instance.uuid,
        project_id=instance.project_id,
        instance=instance,
        block_device_mappings=disks or wire_objects.BlockDeviceMappingList(),
    )


def delete_build_request(connection: Connection, instance_uuid: str) -> bool:
    """Delete the request; False when it is gone: the user deleted it."""
    criterion = build_requests.c.instance_uuid == instance_uuid
    return connection.execute(build_requests.delete().where(criterion)).rowcount > 0


def create_server(conn: Connection, new: wire_objects.BuildRequest) -> bool:
    """Make the instance that *new* asks for; False when its user has cancelled it."""
    instance = new.instance
    if not list_build_requests(conn, [instance.uuid]):
        return False
    create_instance(conn, instance)
    for disk in new.block_device_mappings:
        disk.instance_uuid = instance.uuid
    create_disks(conn, new.block_device_mappings)
    return True


def prepare_build(
    conn: Connection,
    instance: objects.Instance,
    chosen: objects.Selection,
    attempts: int,
    default_zone: str | None,
) -> tuple[objects.Instance, wire_objects.BlockDeviceMappingList] | None:
    """Note that *instance* goes to the host *chosen*; the instance as it is now, and its disks.

    It gets the zone of the host, which is *default_zone* for a host in none; with None it keeps
    its own.  A first attempt ends the build request; None when the user had cancelled that.
    Raises InstanceNotFound.
    """
    row = instances.get(conn, instance.uuid)
    if attempts <= 1 and not delete_build_request(conn, row.uuid) and not _api_is_old(conn):
        LOG.info("The build of instance %s is dropped: its build request was deleted", row.uuid)
        return None
    if default_zone is not None:
        row.availability_zone = _zone(conn, chosen, default_zone)
        instances.update(conn, row.uuid, availability_zone=row.availability_zone)
    instances.set_system_metadata(conn, row.uuid, ATTEMPTS_KEY, str(attempts))
    fresh = instance.copy()  # the rows know better than the caller
    for name, value in row.set_fields().items():
        setattr(fresh, name, value)
    return fresh, disks_of(conn, row.uuid)


def _api_is_old(conn: Connection) -> bool:
    """True when an API may be at work that makes no build requests."""
    known = [service.version for service in services.list_all(conn, binary=API_BINARY)]
    return bool(known) and min(known) < FIRST_API_WITH_BUILD_REQUESTS


def _zone(conn: Connection, chosen: objects.Selection, default: str) -> str | None:
    if chosen.is_set("availability_zone"):
        return chosen.availability_zone
    zones = (
        aggregate.availability_zone
        for aggregate in aggregates.list_all(conn)
        if chosen.service_host in aggregate.hosts
    )
    return next((zone for zone in zones if zone), default)


def add_fault(conn: Connection, uuid: str, error: BaseException, host: str) -> None:
    """Note *error*, met on *host*, as a fault of the instance."""
    fault = errors.Fault.from_error(error)
    instances.add_fault(conn, uuid, fault.code, fault.message, fault.details, host)


def end_build(conn: Connection, uuid: str, error: BaseException, host: str, attempts: int) -> None:
    """Write *error* as the end of the build; raises InstanceNotFound when it is gone."""
    instances.update(conn, uuid, vm_state="error", task_state=None)
    add_fault(conn, uuid, error, host)
    instances.set_system_metadata(conn, uuid, ATTEMPTS_KEY, str(attempts))
    instances.set_system_metadata(conn, uuid, "network_allocated", "False")
    delete_build_request(conn, uuid)
