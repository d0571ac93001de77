from __future__ import annotations

import json

import pytest

from conductor_stub import build_requests
from scheduler import errors, objects
from scheduler.db.tables import build_requests as table
from tests.unit.db.builders import columns, instance


def test_round_trip(conn):
    asked = instance(display_name="vm", metadata={"a": "b"})
    devices = objects.BlockDeviceMappingList(
        objects=[objects.BlockDeviceMapping(instance_uuid=asked.uuid, boot_index=0)]
    )
    row_id = build_requests.create(conn, asked, devices)
    found = build_requests.get(conn, asked.uuid)
    assert (found.id, found.project_id) == (row_id, "project")
    assert (found.instance.display_name, found.instance.metadata) == ("vm", {"a": "b"})
    assert found.instance.flavor.name == "big"
    assert [one.boot_index for one in found.block_device_mappings] == [0]


def test_life_of_a_request(conn):
    asked = instance()
    build_requests.create(conn, asked)
    with pytest.raises(errors.AlreadyExists, match=asked.uuid), conn.begin_nested():
        build_requests.create(conn, asked)
    (row,) = columns(conn, table)
    assert json.loads(row["instance"])["nova_object.name"] == "Instance"
    devices = json.loads(row["block_device_mappings"])
    assert devices["nova_object.name"] == "BlockDeviceMappingList"
    assert devices["nova_object.data"] == {"objects": []}

    build_requests.destroy(conn, asked.uuid)
    assert columns(conn, table) == []
    for call in (build_requests.destroy, build_requests.get):
        with pytest.raises(errors.BuildRequestNotFound, match=asked.uuid):
            call(conn, asked.uuid)
