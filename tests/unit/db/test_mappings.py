"""Cells, and the rows of the API database that only the conductor's side writes."""

import pytest

from conductor_stub import server_rows, wire_objects
from scheduler import errors
from scheduler.db.databases import CELL0_UUID, list_cells
from tests.unit.db.builders import instance


def test_cells_of_a_new_database(conn):
    cell0, cell1 = list_cells(conn)
    assert (cell0.name, cell0.uuid) == ("cell0", CELL0_UUID)
    assert (cell0.transport_url, cell1.name, cell1.disabled) == ("none:///", "cell1", False)
    assert not cell1.is_set("database_connection")


def test_life_of_a_build_request(conn):
    asked = instance(display_name="vm", metadata={"a": "b"})
    disk = wire_objects.BlockDeviceMapping(instance_uuid=asked.uuid, boot_index=0)
    disks, uuid = wire_objects.BlockDeviceMappingList(objects=[disk]), asked.uuid
    server_rows.create_build_request(conn, asked, disks)
    with pytest.raises(errors.AlreadyExists, match=uuid), conn.begin_nested():
        server_rows.create_build_request(conn, asked)
    (found,) = server_rows.list_build_requests(conn, [uuid])
    assert (found.instance.metadata, found.instance.flavor.name) == ({"a": "b"}, "big")
    assert [one.boot_index for one in found.block_device_mappings] == [0]
    assert server_rows.delete_build_request(conn, uuid)
    assert server_rows.list_build_requests(conn) == []
    assert not server_rows.delete_build_request(conn, uuid)
