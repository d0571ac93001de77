"""Cells, and the rows of the API database that only the conductor's side writes."""

import pytest

from conductor_stub import server_rows
from scheduler import errors, objects
from scheduler.db.databases import CELL0_UUID, list_cells
from scheduler.db.tables import cell_mappings, host_mappings, instance_mappings
from tests.unit.db.builders import columns, instance


def test_cells_of_a_new_database(conn):
    cell0, cell1 = list_cells(conn)
    assert (cell0.name, cell0.uuid) == ("cell0", CELL0_UUID)
    assert (cell0.transport_url, cell1.name, cell1.disabled) == ("none:///", "cell1", False)
    assert not cell1.is_set("database_connection")
    assert server_rows.first_cell(conn).id == cell1.id
    conn.execute(cell_mappings.update().where(cell_mappings.c.id == cell1.id).values(disabled=True))
    with pytest.raises(errors.DatabaseNotReady, match="no enabled cell"):
        server_rows.create_host_mappings(conn, ["h1"])


def test_hosts_are_mapped_once(conn):
    cell0, cell1 = list_cells(conn)
    server_rows.create_host_mappings(conn, ["h1"], cell0.id)
    for _ in range(2):
        server_rows.create_host_mappings(conn, ["h1", "h2", "h2"])
    found = [(row["host"], row["cell_id"]) for row in columns(conn, host_mappings)]
    assert found == [("h1", cell0.id), ("h2", cell1.id)]


def test_life_of_a_build_request_and_of_its_mapping(conn):
    asked = instance(display_name="vm", metadata={"a": "b"})
    disk = objects.BlockDeviceMapping(instance_uuid=asked.uuid, boot_index=0)
    disks, uuid = objects.BlockDeviceMappingList(objects=[disk]), asked.uuid
    server_rows.create_build_request(conn, asked, disks)
    with pytest.raises(errors.AlreadyExists, match=uuid), conn.begin_nested():
        server_rows.create_build_request(conn, asked)
    (found,) = server_rows.list_build_requests(conn, [uuid])
    assert (found.instance.metadata, found.instance.flavor.name) == ({"a": "b"}, "big")
    assert [one.boot_index for one in found.block_device_mappings] == [0]
    assert server_rows.delete_build_request(conn, uuid)
    assert server_rows.list_build_requests(conn) == []
    assert not server_rows.delete_build_request(conn, uuid)

    (row,) = columns(conn, instance_mappings)
    assert (row["queued_for_delete"], row["cell_id"]) == (False, None)
    cell = server_rows.first_cell(conn)
    assert server_rows.set_instance_cell(conn, uuid, cell.id)
    mapping = server_rows.get_instance_mapping(conn, uuid)
    assert (mapping.cell_id, mapping.project_id) == (cell.id, "project")
    assert server_rows.delete_instance_mapping(conn, uuid)
    assert server_rows.get_instance_mapping(conn, uuid) is None
    assert not server_rows.set_instance_cell(conn, uuid, cell.id)
