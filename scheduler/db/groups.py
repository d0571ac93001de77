"""The server groups, their members and policies (reference page database, section 4)."""

import json
from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Connection

from scheduler import errors, objects
from scheduler.db import rows
from scheduler.db.tables import (
    instance_group_member,
    instance_group_policy,
    instance_groups,
    instances,
)


def create(
    connection: Connection,
    name: str,
    policy: str,
    rules: Mapping[str, object] | None = None,
    *,
    project_id: str | None = None,
    user_id: str | None = None,
) -> objects.InstanceGroup:
    """Insert a group, whose name need not be unique; rules are stored as text."""
    owner = {"project_id": project_id, "user_id": user_id}
    group_id = rows.insert(connection, instance_groups, name=name, **owner)
    texts = json.dumps({key: str(value) for key, value in rules.items()}) if rules else None
    rows.insert(connection, instance_group_policy, group_id=group_id, policy=policy, rules=texts)
    (made,) = list_all(connection, instance_groups.c.id == group_id)
    return made


def get(connection: Connection, name_or_uuid: str) -> objects.InstanceGroup:
    """The group with that uuid, or the one of that name; raises InstanceGroupNotFound.

    InvalidRequest lists the uuids of several that share the name.
    """
    for column in (instance_groups.c.uuid, instance_groups.c.name):
        found = list_all(connection, column == name_or_uuid)
        if len(found) > 1:
            uuids = ", ".join(each.uuid for each in found)
            reason = f"{len(found)} server groups have this name, give one's uuid: {uuids}"
            raise errors.InvalidRequest(field=name_or_uuid, reason=reason)
        if found:
            return found[0]
    raise errors.InstanceGroupNotFound(group_uuid=name_or_uuid)


def member_hosts(connection: Connection, group: objects.InstanceGroup) -> list[str]:
    """The distinct hosts of the living members that have one, sorted."""
    query = sa.select(instances.c.host).where(
        instances.c.deleted == 0, instances.c.host.is_not(None)
    )
    found = rows.select_in(connection, query.distinct(), instances.c.uuid, group.members)
    return sorted({row.host for row in found})


def list_all(connection: Connection, *criteria: ColumnElement[bool]) -> list[objects.InstanceGroup]:
    """Those that meet all *criteria*, in the order of the ids."""
    found = rows.read(connection, instance_groups, *criteria)
    ids, tables = [row["id"] for row in found], (instance_group_member, instance_group_policy)
    members, policies = rows.children(connection, "group_id", ids, *tables)
    groups = []
    for row in found:
        # Nothing in the tables forbids a member to be in it twice, or several policies: the first
        # one is meant.
        policy = next(iter(policies[row["id"]]), None)
        known = {
            "policy": policy and policy.policy,
            "rules": json.loads(policy.rules) if policy and policy.rules else {},
            "members": list(dict.fromkeys(each.instance_uuid for each in members[row["id"]])),
        }
        groups.append(rows.to_object(objects.InstanceGroup, row, **known))
    return groups
