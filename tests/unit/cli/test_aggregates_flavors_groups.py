"""``aggregate``, ``flavor`` and ``group``."""

from conductor_stub import server_rows
from scheduler import objects


def test_aggregate_life(manage, add_host):
    add_host("alpha")
    made = manage(
        *("aggregate", "create", "fast", "--zone", "az1"),
        *("--property", "ssd=true", "--property", "cpu=a=b"),
    )
    assert made["availability_zone"] == "az1"
    assert made["properties"] == {"ssd": "true", "cpu": "a=b"}
    assert manage("aggregate", "add-host", "fast", "alpha")["hosts"] == ["alpha"]
    changed = manage(
        *("aggregate", "set", "fast", "--name", "faster", "--zone", "az2"),
        *("--property", "ssd=no"),
    )
    assert (changed["name"], changed["availability_zone"]) == ("faster", "az2")
    assert changed["properties"] == {"ssd": "no", "cpu": "a=b"}
    by_id = str(changed["id"])
    bare = manage("aggregate", "set", by_id, "--no-property", "--property", "x=1")
    assert (bare["properties"], bare["availability_zone"]) == ({"x": "1"}, "az2")
    assert manage("aggregate", "show", "faster") == bare
    assert manage("aggregate", "set", by_id, "--zone", "")["availability_zone"] is None
    assert manage("aggregate", "set", by_id, "--zone", "az2") == bare
    (row,) = manage("aggregate", "list")
    assert list(row.values()) == [made["id"], "faster", "az2", ["alpha"], {"x": "1"}]
    assert manage("aggregate", "remove-host", "faster", "alpha")["hosts"] == []
    manage("aggregate", "delete", "faster")
    assert manage("aggregate", "list") == []


def test_aggregate_delete_is_all_or_none(manage, refused, database):
    manage("aggregate", "create", "one")
    assert "two" in refused("aggregate", "delete", "one", "two")
    assert f"{2**64} could not be found" in refused("aggregate", "show", str(2**64))
    assert len(manage("aggregate", "list")) == 1


def test_flavors(manage, database):
    before = {row["name"] for row in manage("flavor", "list")}
    made = manage(
        *("flavor", "create", "big", "--id", "42", "--ram", "65536", "--vcpus", "32"),
        *("--disk", "100", "--ephemeral", "10", "--swap", "512"),
        *("--private", "--project", "p1", "--property", "hw:cpu_policy=dedicated"),
    )
    assert made == {
        "id": "42",
        "name": "big",
        "ram_mb": 65536,
        "vcpus": 32,
        "disk_gb": 100,
        "ephemeral_gb": 10,
        "swap_mb": 512,
        "is_public": False,
        "disabled": False,
        "properties": {"hw:cpu_policy": "dedicated"},
        "projects": ["p1"],
    }
    assert manage("flavor", "show", "42") == made
    assert manage("flavor", "show", "big") == made
    after = {row["name"] for row in manage("flavor", "list")}
    assert after - before == {"big"}
    manage("flavor", "delete", "big")
    assert {row["name"] for row in manage("flavor", "list")} == before


def test_groups(manage, database):
    made = manage(
        *("group", "create", "web", "--policy", "anti-affinity"),
        *("--rule", "max_server_per_host=2"),
    )
    uuid = "6f70656e-0000-4000-8000-000000000002"
    with database.write() as connection:
        server_rows.create_instance(connection, objects.Instance(uuid=uuid, host="alpha"))
        server_rows.join_group(connection, made["id"], [uuid])
    shown = manage("group", "show", "web")
    assert shown == {
        "id": made["id"],
        "name": "web",
        "policy": "anti-affinity",
        "rules": {"max_server_per_host": 2},
        "members": [uuid],
        "hosts": ["alpha"],
    }
    (row,) = manage("group", "list")
    assert (row["name"], row["policy"], row["members"]) == ("web", "anti-affinity", 1)


def test_groups_of_one_name(manage, refused, database):
    del database
    uuids = [manage("group", "create", "web")["id"] for _each in range(2)]
    said = refused("group", "show", "web")
    assert f"web: 2 server groups have this name, give one's uuid: {', '.join(uuids)}" in said
    assert manage("group", "show", uuids[1])["id"] == uuids[1]
