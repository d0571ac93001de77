from __future__ import annotations

import pytest

from scheduler import errors, objects
from scheduler.db import block_devices, instances
from scheduler.db.tables import block_device_mapping as table
from tests.unit.db.builders import columns, instance

UUID = "9f0d1c2b-0000-4000-8000-0000000000bb"


@pytest.fixture
def owner(conn):
    made = instance()
    instances.create(conn, made)
    return made


def device(owner, **changes):
    values = {"instance_uuid": owner.uuid, "source_type": "image", "boot_index": 0}
    return objects.BlockDeviceMapping(**{**values, **changes})


def test_round_trip_in_order(conn, owner):
    root = device(owner, destination_type="volume", volume_size=10, uuid=UUID)
    block_devices.create(conn, [root, device(owner, boot_index=None, device_name="/dev/vdb")])
    found = block_devices.for_instance(conn, owner.uuid)
    assert isinstance(found, objects.BlockDeviceMappingList)
    assert [one.boot_index for one in found] == [0, None]
    assert (found[0].uuid, found[0].id, found[0].is_boot_volume) == (UUID, root.id, True)
    assert len(found[1].uuid) == 36


def test_defaults_are_written(conn, owner):
    block_devices.create(conn, [device(owner)])
    (row,) = columns(conn, table)
    values = (row["delete_on_termination"], row["no_device"], row["encrypted"], row["deleted"])
    assert values == (False, False, False, 0)


def test_attachment(conn, owner):
    disk = device(owner)
    block_devices.create(conn, [disk])
    block_devices.set_attachment(conn, disk.id, UUID)
    assert block_devices.for_instance(conn, owner.uuid)[0].attachment_id == UUID


def test_uuid_taken(conn, owner):
    block_devices.create(conn, [device(owner, uuid=UUID)])
    with pytest.raises(errors.AlreadyExists, match=UUID), conn.begin_nested():
        block_devices.create(conn, [device(owner, uuid=UUID)])


def test_no_disks(conn, owner):
    assert len(block_devices.for_instance(conn, owner.uuid)) == 0
