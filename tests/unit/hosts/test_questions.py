"""What drivers ask the host manager besides its table."""

import datetime

import pytest

from scheduler import errors, objects
from scheduler.db import compute_nodes, instances, tables
from tests.unit.hosts.reading import (
    NODE,
    change,
    row_of,
    utc_now,
)


@pytest.mark.parametrize(
    ("changes", "is_up"),
    [
        ({"last_seen_up": -45}, True),
        ({"last_seen_up": -62}, False),
        ({"last_seen_up": 58}, True),
        ({"last_seen_up": 90}, False),
        ({"last_seen_up": None, "created_at": -10}, True),
        ({"last_seen_up": None, "created_at": -62}, False),
        ({"disabled": True}, False),
        ({"forced_down": True}, False),
        ({"deleted": 1}, False),
        ({"topic": "other"}, False),
    ],
    ids=str,
)
def test_hosts_up_are_those_heard_from(manager, database, changes, is_up):
    values = {
        name: utc_now() + datetime.timedelta(seconds=value) if type(value) is int else value
        for name, value in changes.items()
        if name != "deleted"
    }
    table = tables.services
    with database.write() as connection:
        connection.execute(table.update().where(table.c.host == "h2").values({**changes, **values}))
    assert manager.hosts_up("compute") == (["h1", "h2", "h3"] if is_up else ["h1", "h3"])


def test_the_first_node_of_a_host_is_that_of_the_lowest_id(manager, database):
    change(database, compute_nodes.upsert, "h2", "another.example", NODE)
    expected = {host: f"{host}.example" for host in ("h1", "h2")}
    found = manager.first_nodes(["h1", "h2", "ghost"])
    assert {host: node for host, (node, _uuid, _cell) in found.items()} == expected
    assert found["h2"][1] == manager.table.value(row_of(manager, "h2"), "uuid")


def test_one_host_by_node_or_by_name(manager, database):
    change(database, compute_nodes.upsert, "h2", "another.example", NODE)
    manager.refresh()

    assert manager.state_of("h2").nodename == "h2.example"
    assert manager.state_of("h2", "another.example").nodename == "another.example"
    for ghost in (("ghost", None), ("h2", "h1.example")):
        with pytest.raises(errors.ComputeHostNotFound):
            manager.state_of(*ghost)


def test_hosts_of_a_group_of_havanas_kind(manager, database):
    homes = {1: "h1", 2: "h1", 3: "h2", 4: None, 5: "h3"}
    for number, host in homes.items():
        uuid = f"00000000-0000-4000-a000-00000000000{number}"
        metadata = {"group": "web" if number != 5 else "db", "image": "web"}
        instance = objects.Instance(uuid=uuid, host=host, metadata={}, system_metadata=metadata)
        change(database, instances.create, instance)
    change(database, instances.destroy, "00000000-0000-4000-a000-000000000002")
    left = {"instance_uuid": "00000000-0000-4000-a000-000000000005", "key": "group"}
    with database.write() as connection:
        gone = tables.instance_system_metadata.insert()
        connection.execute(gone.values(**left, value="web", deleted=1))

    assert manager.group_hosts("web") == ["h1", "h2"]
    assert manager.group_hosts("none") == []


def test_capabilities_of_havanas_kind(manager, clock):
    said = {"hypervisor_hostname": "h1.example", "cpus": 4}
    manager.update_service_capabilities("compute", "h1", said)
    manager.update_service_capabilities("volume", "h2", {"hypervisor_hostname": "h2.example"})

    capabilities = manager.state_of("h1").capabilities
    assert capabilities["cpus"] == 4
    now = datetime.datetime.fromtimestamp(clock(), datetime.UTC)
    assert capabilities["timestamp"] == now.replace(tzinfo=None)
    with pytest.raises(TypeError):
        capabilities["cpus"] = 5
    assert manager.state_of("h2").capabilities == {}
