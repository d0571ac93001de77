from __future__ import annotations

import pytest

from scheduler import errors
from scheduler.db import groups, instances
from scheduler.db.tables import instance_group_member, instance_group_policy
from tests.unit.db.builders import columns, instance

UUID = "f4a0f8c0-0000-4000-8000-00000000aaaa"


def test_create_group(conn):
    made = groups.create(
        conn, "web", "anti-affinity", {"max_server_per_host": 2}, project_id="p", user_id="u"
    )
    assert (made.name, made.policy, made.policies) == ("web", "anti-affinity", ["anti-affinity"])
    assert made.rules == {"max_server_per_host": 2}
    assert (made.project_id, made.user_id, made.members) == ("p", "u", [])
    assert columns(conn, instance_group_policy)[0]["rules"] == '{"max_server_per_host": "2"}'


def test_find(conn):
    first = groups.create(conn, "web", "affinity", group_uuid=UUID)
    groups.create(conn, "web", "soft-affinity")
    assert groups.get(conn, UUID).id == first.id
    assert groups.get(conn, "web").id == first.id
    assert [one.policy for one in groups.list_all(conn)] == ["affinity", "soft-affinity"]


def test_members(conn):
    made = groups.create(conn, "web", "affinity")
    other = groups.create(conn, "db", "affinity")
    groups.add_members(conn, made.uuid, ["i1", "i2", "i1"])
    groups.add_members(conn, made.uuid, ["i2", "i3"])
    groups.add_members(conn, other.uuid, ["i9"])
    assert groups.get(conn, made.uuid).members == ["i1", "i2", "i3"]
    assert groups.by_instance(conn, "i3").uuid == made.uuid
    assert groups.by_instance(conn, "i9").uuid == other.uuid


def test_members_and_policies_that_are_there_twice(conn):
    made = groups.create(conn, "web", "affinity")
    conn.execute(instance_group_policy.insert().values(group_id=made.id, policy="anti-affinity"))
    for _ in range(2):
        conn.execute(instance_group_member.insert().values(group_id=made.id, instance_uuid="i1"))
    found = groups.get(conn, made.uuid)
    assert (found.members, found.policy) == (["i1"], "affinity")


def test_hosts_of_living_members(conn):
    members = [instance(host=host) for host in ("h2", "h1", "h2", None, "h3")]
    for one in members:
        instances.create(conn, one)
    outsider = instance(host="h9")
    instances.create(conn, outsider)
    instances.destroy(conn, members[-1].uuid)
    made = groups.create(conn, "web", "affinity")
    groups.add_members(conn, made.uuid, [one.uuid for one in members] + ["never-created"])
    assert groups.member_hosts(conn, groups.get(conn, made.uuid)) == ["h1", "h2"]


@pytest.mark.parametrize(
    "call",
    [
        lambda conn: groups.get(conn, "no"),
        lambda conn: groups.by_instance(conn, "no"),
        lambda conn: groups.add_members(conn, "web", ["i1"]),
    ],
)
def test_missing(conn, call):
    groups.create(conn, "web", "affinity", group_uuid=UUID)
    with pytest.raises(errors.InstanceGroupNotFound):
        call(conn)
    with pytest.raises(errors.AlreadyExists, match=UUID), conn.begin_nested():
        groups.create(conn, "db", "affinity", group_uuid=UUID)
