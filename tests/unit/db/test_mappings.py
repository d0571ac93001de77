"""Cells, and the rows of the API database that only the conductor's side writes."""

from __future__ import annotations

import pytest

from conductor_stub import build_requests, mappings
from scheduler import errors, objects
from scheduler.db.databases import list_cells
from scheduler.db.tables import cell_mappings, host_mappings, instance_mappings
from tests.unit.db.builders import columns, instance


def test_cells_of_a_new_database(conn):
    cell0, cell1 = list_cells(conn)
    assert (cell0.name, cell0.uuid) == ("cell0", mappings.CELL0_UUID)
    assert (cell0.transport_url, cell1.name, cell1.disabled) == ("none:///", "cell1", False)
    assert not cell1.is_set("database_connection")
    assert mappings.first_cell(conn).id == cell1.id
    conn.execute(cell_mappings.update().where(cell_mappings.c.id == cell1.id).values(disabled=True))
    with pytest.raises(errors.DatabaseNotReady, match="no enabled cell"):
        mappings.create_host_mappings(conn, ["h1"])


def test_life_of_an_instance_mapping(conn):
    mappings.create_instance_mapping(conn, "i1", "project", "user")
    (row,) = columns(conn, instance_mappings)
    assert (row["queued_for_delete"], row["cell_id"]) == (False, None)
    cell = mappings.first_cell(conn)
    assert mappings.set_instance_cell(conn, "i1", cell.id)
    with pytest.raises(errors.AlreadyExists, match="i1"), conn.begin_nested():
        mappings.create_instance_mapping(conn, "i1", "project")
    found = mappings.get_instance_mapping(conn, "i1")
    assert (found.cell_id, found.project_id, found.user_id) == (cell.id, "project", "user")
    assert mappings.delete_instance_mapping(conn, "i1")
    assert mappings.get_instance_mapping(conn, "i1") is None
    assert not mappings.set_instance_cell(conn, "i1", cell.id)


def test_hosts_are_mapped_once(conn):
    cell0, cell1 = list_cells(conn)
    mappings.create_host_mappings(conn, ["h1"], cell0.id)
    for _ in range(2):
        mappings.create_host_mappings(conn, ["h1", "h2", "h2"])
    found = [(row["host"], row["cell_id"]) for row in columns(conn, host_mappings)]
    assert found == [("h1", cell0.id), ("h2", cell1.id)]


def test_life_of_a_build_request(conn):
    asked = instance(display_name="vm", metadata={"a": "b"})
    disk = objects.BlockDeviceMapping(instance_uuid=asked.uuid, boot_index=0)
    build_requests.create(conn, asked, objects.BlockDeviceMappingList(objects=[disk]))
    with pytest.raises(errors.AlreadyExists, match=asked.uuid), conn.begin_nested():
        build_requests.create(conn, asked)
    found = build_requests.get(conn, asked.uuid)
    assert (found.instance.metadata, found.instance.flavor.name) == ({"a": "b"}, "big")
    assert [one.boot_index for one in found.block_device_mappings] == [0]
    build_requests.destroy(conn, asked.uuid)
    for call in (build_requests.destroy, build_requests.get):
        with pytest.raises(errors.BuildRequestNotFound, match=asked.uuid):
            call(conn, asked.uuid)
