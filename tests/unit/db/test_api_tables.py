"""Flavors, server groups and aggregates, which live in the API database."""

import pytest

from conductor_stub import server_rows
from scheduler import errors
from scheduler.db import aggregates, flavors, groups
from scheduler.db import tables as t
from tests.unit.db.builders import columns, flavor, instance


def test_the_usual_flavors_are_there(conn):
    found = flavors.list_all(conn)
    assert [(f.flavorid, f.name, f.memory_mb, f.vcpus, f.root_gb) for f in found] == [
        ("1", "m1.tiny", 512, 1, 1),
        ("2", "m1.small", 2048, 1, 20),
        ("3", "m1.medium", 4096, 2, 40),
        ("4", "m1.large", 8192, 4, 80),
        ("5", "m1.xlarge", 16384, 8, 160),
    ]
    assert {(f.ephemeral_gb, f.swap, f.rxtx_factor) for f in found} == {(0, 0, 1.0)}
    assert {(f.is_public, f.disabled) for f in found} == {(True, False)}


def test_a_flavor_is_made_and_found_in_each_way(conn):
    specs = {"hw:cpu_policy": "dedicated", "a": "1"}
    made = flavors.create(conn, flavor(name="2", extra_specs=specs, projects=["p1"], swap=64))
    for column, value in (("id", made.id), ("name", "2"), ("flavorid", "77")):
        found = flavors.get(conn, column, value)
        assert (found.id, found.swap, found.is_public) == (made.id, 64, True)
        assert (found.extra_specs, found.projects) == (specs, ["p1"])
    wanted = flavor(name="no flavorid")
    del wanted.__dict__["flavorid"]
    assert len(flavors.create(conn, wanted).flavorid) == 36


def test_disks_of_an_old_flavor_may_be_null(conn):
    conn.execute(t.flavors.update().where(t.flavors.c.name == "m1.tiny").values(root_gb=None))
    assert flavors.get(conn, "name", "m1.tiny").root_gb == 0


def test_a_group_is_made_and_found(conn):
    rules = {"max_server_per_host": 2}
    made = groups.create(conn, "web", "anti-affinity", rules, project_id="p", user_id="u")
    assert (made.name, made.policy, made.policies) == ("web", "anti-affinity", ["anti-affinity"])
    assert (made.rules, made.project_id, made.user_id, made.members) == (rules, "p", "u", [])
    assert columns(conn, t.instance_group_policy)[0]["rules"] == '{"max_server_per_host": "2"}'
    groups.create(conn, "db", "soft-affinity")
    assert groups.get(conn, made.uuid).id == groups.get(conn, "web").id == made.id
    assert [one.policy for one in groups.list_all(conn)] == ["anti-affinity", "soft-affinity"]


def test_members(conn):
    made = groups.create(conn, "web", "affinity")
    other = groups.create(conn, "db", "affinity")
    server_rows.join_group(conn, made.uuid, ["i1", "i2"])
    server_rows.join_group(conn, made.uuid, ["i3"])
    server_rows.join_group(conn, other.uuid, ["i9"])
    # Nothing in the tables forbids rows that are there twice.
    conn.execute(t.instance_group_policy.insert().values(group_id=made.id, policy="other"))
    conn.execute(t.instance_group_member.insert().values(group_id=made.id, instance_uuid="i1"))
    found = groups.get(conn, made.uuid)
    assert (found.members, found.policy) == (["i1", "i2", "i3"], "affinity")
    assert server_rows.group_of(conn, "i3").uuid == made.uuid
    assert server_rows.group_of(conn, "i9").uuid == other.uuid
    assert server_rows.group_of(conn, "i10") is None


def test_hosts_of_living_members(conn):
    members = [instance(host=host) for host in ("h2", "h1", "h2", None, "h3")]
    for one in (*members, instance(host="h9")):
        server_rows.create_instance(conn, one)
    server_rows.destroy_instance(conn, members[-1].uuid)
    made = groups.create(conn, "web", "affinity")
    server_rows.join_group(conn, made.uuid, [one.uuid for one in members] + ["never-created"])
    assert groups.member_hosts(conn, groups.get(conn, made.uuid)) == ["h1", "h2"]


@pytest.fixture
def ssd(conn):
    return aggregates.create(conn, "ssd", {"availability_zone": "az1", "disk": "ssd"}, ["h1", "h2"])


def test_aggregates_are_listed_and_found_by_name_or_id(conn, ssd):
    assert (ssd.availability_zone, len(ssd.uuid)) == ("az1", 36)
    numeric = aggregates.create(conn, str(ssd.id), hosts=["h1"])
    found = [(one.name, one.hosts, one.metadata) for one in aggregates.list_all(conn)]
    texts = {"availability_zone": "az1", "disk": "ssd"}
    assert found == [("ssd", ["h1", "h2"], texts), (numeric.name, ["h1"], {})]
    assert aggregates.get(conn, "ssd").id == aggregates.get(conn, ssd.id).id == ssd.id
    for text in (str(ssd.id), str(numeric.id)):
        assert aggregates.get(conn, text).id == numeric.id


def test_a_deleted_aggregate_leaves_nothing(conn, ssd):
    aggregates.delete(conn, ssd.id)
    for each in (t.aggregates, t.aggregate_hosts, t.aggregate_metadata):
        assert columns(conn, each) == []


TAKEN, NO_AGGREGATE = errors.AlreadyExists, errors.AggregateNotFound
NO_FLAVOR, NO_GROUP = errors.FlavorNotFound, errors.InstanceGroupNotFound


@pytest.mark.parametrize(
    ("error", "text", "call"),
    [
        (TAKEN, "flavor", lambda c, i: flavors.create(c, flavor(flavorid="3"))),
        (NO_FLAVOR, "999", lambda c, i: flavors.get(c, "id", 999)),
        (NO_GROUP, "no", lambda c, i: server_rows.join_group(c, "no", ["i1"])),
        (NO_AGGREGATE, "999", lambda c, i: aggregates.get(c, 999)),
        (NO_AGGREGATE, "²", lambda c, i: aggregates.get(c, "²")),
        (TAKEN, "h1", lambda c, i: aggregates.add_host(c, i, "h1")),
        (TAKEN, "hdd", lambda c, i: aggregates.rename(c, i, "hdd")),
    ],
)
def test_refused(conn, ssd, error, text, call):
    groups.create(conn, "web", "affinity")
    aggregates.create(conn, "hdd")
    with pytest.raises(error, match=text), conn.begin_nested():
        call(conn, ssd.id)
