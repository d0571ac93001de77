from __future__ import annotations

import pytest

from conductor_stub import mappings
from scheduler import errors
from scheduler.db.databases import list_cells
from scheduler.db.tables import cell_mappings, host_mappings, instance_mappings
from tests.unit.db.builders import columns, is_fresh


def test_cells_of_a_new_database(conn):
    cell0, cell1 = list_cells(conn)
    assert (cell0.name, cell0.uuid) == ("cell0", mappings.CELL0_UUID)
    assert cell0.transport_url == "none:///"
    assert (cell1.name, cell1.disabled) == ("cell1", False)
    assert not cell1.is_set("database_connection")
    assert mappings.first_cell(conn).id == cell1.id


def test_disabled_cell_is_not_the_first(conn):
    cell = mappings.first_cell(conn)
    conn.execute(cell_mappings.update().where(cell_mappings.c.id == cell.id).values(disabled=True))
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
    assert is_fresh(columns(conn, instance_mappings)[0]["updated_at"])
    assert mappings.delete_instance_mapping(conn, "i1")
    assert mappings.get_instance_mapping(conn, "i1") is None
    assert not mappings.set_instance_cell(conn, "i1", cell.id)
    assert not mappings.delete_instance_mapping(conn, "i1")


def test_hosts_are_mapped_once(conn):
    cell0, cell1 = list_cells(conn)
    mappings.create_host_mappings(conn, ["h1"], cell0.id)
    mappings.create_host_mappings(conn, ["h1", "h2", "h2"])
    mappings.create_host_mappings(conn, ["h1", "h2"])
    found = [(row["host"], row["cell_id"]) for row in columns(conn, host_mappings)]
    assert found == [("h1", cell0.id), ("h2", cell1.id)]
    h2 = mappings.get_host_mapping(conn, "h2")
    assert h2 is not None
    assert (h2.host, h2.cell_id) == ("h2", cell1.id)
    assert mappings.get_host_mapping(conn, "h3") is None
