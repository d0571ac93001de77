"""The last check of a server group's policy, when the instance is about to be taken.

Between the scheduler's decision and now another member may have been placed.
"""

from __future__ import annotations

from sqlalchemy import Connection

from conductor_stub.groups import policies_of
from scheduler import errors
from scheduler.db import groups, instances


def check(conn: Connection, uuid: str, host: str) -> None:
    """Raise ``ComputeResourcesUnavailable`` if *uuid* on *host* breaks its group's policy.

    The group stays locked until the transaction ends, so two members cannot pass side by side.
    Soft policies hold always.
    """
    try:
        group = groups.by_instance(conn, uuid)
    except errors.InstanceGroupNotFound:
        return
    policies = policies_of(group)
    if not {"affinity", "anti-affinity"} & set(policies):
        return
    groups.lock(conn, group.uuid)
    others = [member for member in group.members if member != uuid]
    present = instances.list_all(conn, uuids=others, parts=False)
    hosts = [each.host for each in present if each.host]
    if "anti-affinity" in policies:
        allowed = int((group.rules or {}).get("max_server_per_host", 1))
        if hosts.count(host) >= allowed:
            raise errors.ComputeResourcesUnavailable(
                reason=f"{hosts.count(host)} members of anti-affinity group {group.name} are here"
            )
    if "affinity" in policies and set(hosts) - {host}:
        raise errors.ComputeResourcesUnavailable(
            reason=f"members of affinity group {group.name} are on another host"
        )
