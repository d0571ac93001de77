import datetime
import json

import pytest

from conductor_stub import server_rows, wire_objects
from scheduler import errors, objects
from scheduler.db import instances
from scheduler.db.tables import (
    block_device_mapping,
    instance_extra,
    instance_faults,
    instance_metadata,
    instance_system_metadata,
)
from scheduler.db.tables import instances as table
from tests.unit.db.builders import age, columns, flavor, instance, is_fresh

DISK_UUID = "9f0d1c2b-0000-4000-8000-0000000000bb"
EAST = datetime.timezone(datetime.timedelta(hours=2))
MISSING = "00000000-0000-4000-8000-00000000dead"


def make(conn, **changes):
    made = instance(**changes)
    server_rows.create_instance(conn, made)
    return made


def test_new_row(conn):
    made = make(conn, display_name="vm", availability_zone="az1")
    (row,) = columns(conn, table)
    assert row["id"] == made.id
    assert (row["uuid"], row["display_name"], row["memory_mb"]) == (made.uuid, "vm", 1024)
    assert (row["locked"], row["hidden"], row["cleaned"], row["deleted"]) == (False, False, 0, 0)
    assert is_fresh(row["created_at"])
    assert (row["updated_at"], row["host"]) == (None, None)


def test_everything_comes_back(conn):
    made = make(
        conn,
        access_ip_v4="192.0.2.7",
        launched_at=datetime.datetime(2026, 1, 2, 5, 4, 5, tzinfo=EAST),
        metadata={"role": "web"},
        system_metadata={"image_base_image_ref": "abc", "empty": None},
        flavor=flavor(extra_specs={"hw:cpu_policy": "dedicated"}),
        numa_topology=objects.InstanceNUMATopology(
            cells=[objects.InstanceNUMACell(id=0, cpuset={0, 1}, memory=1024)]
        ),
        pci_requests=objects.InstancePCIRequests(
            requests=[objects.InstancePCIRequest(count=1, spec=[{"vendor_id": "8086"}])]
        ),
    )
    found = instances.get(conn, made.uuid)
    assert (str(found.access_ip_v4), found.launched_at) == ("192.0.2.7", made.launched_at)
    assert columns(conn, table)[0]["launched_at"] == datetime.datetime(2026, 1, 2, 3, 4, 5)
    assert found.metadata == {"role": "web"}
    assert found.system_metadata == {"image_base_image_ref": "abc", "empty": None}
    assert found.flavor.extra_specs == {"hw:cpu_policy": "dedicated"}
    assert [cell.memory for cell in found.numa_topology.cells] == [1024]
    assert [(one.count, one.spec) for one in found.pci_requests.requests] == [
        (1, [{"vendor_id": "8086"}])
    ]
    assert found.pci_requests.instance_uuid == made.uuid
    # As Nova writes it.
    (row,) = columns(conn, instance_extra)
    primitive = json.loads(row["flavor"])
    assert primitive["cur"]["nova_object.name"] == "Flavor"
    assert (primitive["old"], primitive["new"]) == (None, None)
    assert json.loads(row["pci_requests"]) == [{"count": 1, "spec": [{"vendor_id": "8086"}]}]


def test_instance_without_any_part(conn):
    made = objects.Instance(uuid="f4a0f8c0-0000-4000-8000-000000000001")
    server_rows.create_instance(conn, made)
    found = instances.get(conn, made.uuid)
    assert (found.numa_topology, found.pci_requests, found.metadata) == (None, None, {})
    assert not found.is_set("flavor")


@pytest.mark.parametrize(
    ("expectations", "matches"),
    [
        ({}, True),
        ({"task_state": "scheduling"}, True),
        ({"task_state": ("scheduling", None)}, True),
        ({"task_state": ("spawning",)}, False),
        ({"task_state": None}, False),
        ({"host": None}, True),
        ({"host": "h1"}, False),
        ({"host": ("h1", None), "task_state": "scheduling"}, True),
        ({"host": None, "task_state": "spawning"}, False),
    ],
)
def test_update_only_from_the_state_expected(conn, expectations, matches):
    made = make(conn)
    changes = {"host": "h9", "vm_state": "active"}
    assert server_rows.update_if(conn, made.uuid, expectations, **changes) is matches
    (row,) = columns(conn, table)
    assert (row["host"], row["vm_state"]) == (("h9", "active") if matches else (None, "building"))
    assert is_fresh(row["updated_at"]) is matches


@pytest.mark.parametrize(
    "call",
    [
        lambda conn: instances.get(conn, MISSING),
        lambda conn: instances.update(conn, MISSING, host="h1"),
        lambda conn: server_rows.update_if(conn, MISSING, {"task_state": None}, host="h1"),
        lambda conn: server_rows.destroy_instance(conn, MISSING),
    ],
)
def test_missing_instance(conn, call):
    with pytest.raises(errors.InstanceNotFound, match=MISSING):
        call(conn)


def test_destroy_marks_all_that_belongs_to_it(conn):
    made = make(conn, metadata={"a": "b"}, system_metadata={"c": "d"}, host="h1")
    other = make(conn, metadata={"a": "b"})
    server_rows.create_disks(conn, [wire_objects.BlockDeviceMapping(instance_uuid=made.uuid)])
    instances.add_fault(conn, made.uuid, 500, "no")
    age(conn, table)
    server_rows.destroy_instance(conn, made.uuid)
    (row, untouched) = columns(conn, table)
    assert row["deleted"] == made.id
    assert is_fresh(row["deleted_at"])
    assert is_fresh(row["updated_at"])
    assert untouched["deleted"] == 0
    for part in (
        *(instance_extra, instance_metadata, instance_system_metadata),
        *(block_device_mapping, instance_faults),
    ):
        gone = columns(conn, part, instance_uuid=made.uuid)
        assert [each["deleted"] for each in gone] == [each["id"] for each in gone] != []
    assert instances.get(conn, other.uuid).metadata == {"a": "b"}
    with pytest.raises(errors.InstanceNotFound):
        instances.get(conn, made.uuid)
    assert instances.list_all(conn, host="h1") == []
    with pytest.raises(errors.AlreadyExists, match=made.uuid), conn.begin_nested():
        make(conn, uuid=made.uuid)


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({}, ["a", "b", "c"]),
        ({"host": "h1"}, ["a", "c"]),
        ({"host": "H1"}, []),
        ({"uuids": []}, []),
    ],
)
def test_list_of_instances(conn, filters, names):
    for name, host in (("a", "h1"), ("b", "h2"), ("c", "h1")):
        make(conn, display_name=name, host=host)
    assert [one.display_name for one in instances.list_all(conn, **filters)] == names


def test_list_by_uuid_in_batches_with_parts_or_without(conn, monkeypatch):
    monkeypatch.setattr("scheduler.db.rows.BATCH", 2)
    made = [make(conn, metadata={"number": str(number)}) for number in range(5)]
    found = instances.list_all(conn, uuids=[one.uuid for one in reversed(made)])
    assert [one.metadata["number"] for one in found] == ["0", "1", "2", "3", "4"]
    bare = instances.list_all(conn, parts=False)[0]
    assert [bare.is_set(name) for name in ("flavor", "metadata", "pci_requests")] == [False] * 3


@pytest.mark.parametrize(
    ("message", "kept"),
    [("x" * 300, "x" * 255), ("ü" * 200, "ü" * 127), ("𝄞" * 100, "𝄞" * 63), ("short", "short")],
)
def test_the_newest_fault_counts_and_is_cut_to_255_bytes(conn, message, kept):
    first, second, third = make(conn), make(conn), make(conn)
    for text in ("fault", message):
        instances.add_fault(conn, first.uuid, 500, text, "Traceback …", "h1")
    instances.add_fault(conn, second.uuid, 404, "gone")
    found = server_rows.latest_faults(conn, [first.uuid, second.uuid, third.uuid])
    assert found.keys() == {first.uuid, second.uuid}
    newest = found[first.uuid]
    assert (newest.code, newest.message, newest.host) == (500, kept, "h1")
    assert newest.details == "Traceback …"


def disk(owner, **changes):
    values = {"instance_uuid": owner.uuid, "source_type": "image", "boot_index": 0}
    return wire_objects.BlockDeviceMapping(**{**values, **changes})


def test_disks_come_back_in_order(conn):
    owner = make(conn)
    assert len(server_rows.disks_of(conn, owner.uuid)) == 0
    root = disk(owner, destination_type="volume", volume_size=10, uuid=DISK_UUID)
    server_rows.create_disks(conn, [root, disk(owner, boot_index=None, device_name="/dev/vdb")])
    found = server_rows.disks_of(conn, owner.uuid)
    assert isinstance(found, wire_objects.BlockDeviceMappingList)
    assert [one.boot_index for one in found] == [0, None]
    assert (found[0].uuid, found[0].id) == (DISK_UUID, root.id)
    assert len(found[1].uuid) == 36
    row = columns(conn, block_device_mapping)[0]
    values = (row["delete_on_termination"], row["no_device"], row["encrypted"], row["deleted"])
    assert values == (False, False, False, 0)
    with pytest.raises(errors.AlreadyExists, match=DISK_UUID), conn.begin_nested():
        server_rows.create_disks(conn, [disk(owner, uuid=DISK_UUID)])
