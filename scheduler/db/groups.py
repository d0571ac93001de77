"""The server groups, their members and policies (reference page database, section 4)."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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
    group_uuid: str | None = None,
) -> objects.InstanceGroup:
    """Insert a group and return it; rules are stored as text, whatever they are.

    Names need not be unique; raises AlreadyExists for a *group_uuid* that is taken.
    """
    new_uuid = group_uuid or str(uuid.uuid4())
    owner = {"project_id": project_id, "user_id": user_id}
    with rows.unique("instance group", new_uuid):
        group_id = rows.insert(connection, instance_groups, uuid=new_uuid, name=name, **owner)
    texts = json.dumps({key: str(value) for key, value in rules.items()}) if rules else None
    rows.insert(connection, instance_group_policy, group_id=group_id, policy=policy, rules=texts)
    return get(connection, new_uuid)


def get(connection: Connection, name_or_uuid: str) -> objects.InstanceGroup:
    """The group with that uuid, or the first of that name; raises InstanceGroupNotFound."""
    for column in (instance_groups.c.uuid, instance_groups.c.name):
        found = _read(connection, column == name_or_uuid)
        if found:
            return found[0]
    raise errors.InstanceGroupNotFound(group_uuid=name_or_uuid)


def list_all(connection: Connection) -> list[objects.InstanceGroup]:
    """Every group with its members, in the order of the ids."""
    return _read(connection)


def by_instance(connection: Connection, instance_uuid: str) -> objects.InstanceGroup:
    """The group that the instance is a member of; raises InstanceGroupNotFound."""
    member = instance_group_member
    group_ids = sa.select(member.c.group_id).where(member.c.instance_uuid == instance_uuid)
    found = _read(connection, instance_groups.c.id.in_(group_ids))
    if not found:
        raise errors.InstanceGroupNotFound(group_uuid=f"of instance {instance_uuid}")
    return found[0]


def add_members(connection: Connection, group_uuid: str, instance_uuids: Iterable[str]) -> None:
    """Make the instances members of the group, where they are not; raises InstanceGroupNotFound."""
    group = _by_uuid(connection, group_uuid)
    known = set(group.members)
    new = [one for one in dict.fromkeys(instance_uuids) if one not in known]
    rows.update(connection, instance_groups, instance_groups.c.id == group.id)
    members = [{"group_id": group.id, "instance_uuid": one} for one in new]
    rows.insert_many(connection, instance_group_member, members)


def lock(connection: Connection, group_uuid: str) -> None:
    """Let nobody else who calls this go on with the group before this transaction ends.

    SQLite needs no lock on the row: its write transactions exclude each other.
    """
    query = sa.select(instance_groups.c.id).where(instance_groups.c.uuid == group_uuid)
    connection.execute(query.with_for_update())


def member_hosts(connection: Connection, group: objects.InstanceGroup) -> list[str]:
    """The distinct hosts of the living members that have one, sorted."""
    query = sa.select(instances.c.host).where(
        instances.c.deleted == 0, instances.c.host.is_not(None)
    )
    found = rows.select_in(connection, query.distinct(), instances.c.uuid, group.members)
    return sorted({row.host for row in found})


def _by_uuid(connection: Connection, group_uuid: str) -> objects.InstanceGroup:
    found = _read(connection, instance_groups.c.uuid == group_uuid)
    if not found:
        raise errors.InstanceGroupNotFound(group_uuid=group_uuid)
    return found[0]


def _read(connection: Connection, *criteria: ColumnElement[bool]) -> list[objects.InstanceGroup]:
    query = sa.select(instance_groups).where(*criteria).order_by(instance_groups.c.id)
    found = list(connection.execute(query).mappings())
    ids = [row["id"] for row in found]
    members: dict[int, dict[str, None]] = {group_id: {} for group_id in ids}
    for row in _of_groups(connection, instance_group_member, ids):
        # Nothing in the table forbids a member to be in it twice.
        members[row.group_id][row.instance_uuid] = None
    policies: dict[int, tuple[str | None, dict[str, str]]] = {}
    for row in _of_groups(connection, instance_group_policy, ids):
        # Of several rows, which the table allows, the first one is meant.
        rules = json.loads(row.rules) if row.rules else {}
        policies.setdefault(row.group_id, (row.policy, rules))
    groups = []
    for row in found:
        policy, rules = policies.get(row["id"], (None, {}))
        known = {"policy": policy, "rules": rules, "members": list(members[row["id"]])}
        groups.append(rows.to_object(objects.InstanceGroup, row, **known))
    return groups


def _of_groups(connection: Connection, table: sa.Table, ids: Sequence[int]) -> list[Any]:
    return rows.select_in(connection, sa.select(table).order_by(table.c.id), table.c.group_id, ids)
