"""Deleting servers as Nova's API does: through their host, or here when they have none.

Reference page conductor, sections 4 (step 4), 8.2 and 11.
"""

from __future__ import annotations

from oslo_log import log as logging
from sqlalchemy import Connection

from conductor_stub.compute_rpcapi import ComputeAPI
from scheduler import errors, objects
from scheduler.db import block_devices, build_requests, instances, mappings
from scheduler.db.database import Database
from scheduler.rpc.context import RequestContext

LOG = logging.getLogger(__name__)

DELETING = "deleting"
"""The task state that keeps a host from finishing the build of a server."""


def delete_server(
    context: RequestContext, database: Database, compute: ComputeAPI, uuid: str
) -> str | None:
    """Delete the server: its host is told, and named here; without one, its rows go at once.

    Raises InstanceNotFound when it is gone already.
    """
    if database.write_retrying(lambda conn: _delete_if_only_asked_for(conn, uuid)):
        return None
    instance, disks = database.write_retrying(lambda conn: _delete_unless_hosted(conn, uuid))
    if instance.host is None:
        return None
    compute.terminate_instance(context, instance, disks)
    return str(instance.host)


def _delete_if_only_asked_for(conn: Connection, uuid: str) -> bool:
    """Take back a build request whose server has no row yet; whether that was the case."""
    if instances.list_all(conn, uuids=[uuid], parts=False):
        return False
    try:
        build_requests.destroy(conn, uuid)
    except errors.BuildRequestNotFound:
        return False
    mappings.delete_instance_mapping(conn, uuid)
    return True


def _delete_unless_hosted(
    conn: Connection, uuid: str
) -> tuple[objects.Instance, objects.BlockDeviceMappingList]:
    instance = instances.get(conn, uuid)
    disks = block_devices.for_instance(conn, uuid)
    # Without its build request, a build that has no host yet is dropped by the conductor.
    try:
        build_requests.destroy(conn, uuid)
    except errors.BuildRequestNotFound:
        LOG.debug("Instance %s has no build request any more", uuid)
    mappings.delete_instance_mapping(conn, uuid)
    if instance.host is None and instances.update(
        conn, uuid, expected_host=None, vm_state="deleted", task_state=None
    ):
        instances.destroy(conn, uuid)
        return instance, disks
    instances.update(conn, uuid, task_state=DELETING)
    return instances.get(conn, uuid), disks  # a host may have taken it just now
