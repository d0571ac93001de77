"""Queries for the newest columns on databases that Nova made, of either layout."""

import datetime

import pytest
import sqlalchemy as sa

from conductor_stub import server_rows
from conductor_stub.compute import registration
from scheduler.db import (
    aggregates,
    compute_nodes,
    flavors,
    groups,
    instances,
    layout,
    rows,
    services,
    tables,
)
from scheduler.db.database import Database
from scheduler.db.databases import list_cells
from scheduler.db.fleet import FleetReader
from tests import nova_layouts
from tests.builders import put_node
from tests.nova_layouts import API, CELL, NEWTON, TODAY
from tests.unit.db.builders import flavor, instance, node_values
from tests.world import databases

NOW = datetime.datetime(2026, 11, 21, 12)


@pytest.fixture(params=[NEWTON, TODAY])
def release(request):
    return request.param


@pytest.fixture
def made(empty_url, release, request):
    """A database that Nova made: that of a cell or, where the test asks for it, the API's."""
    role = API if "api" in request.fixturenames else CELL
    nova_layouts.create(empty_url, release, role)
    with databases.opened(empty_url) as database:
        yield database


@pytest.fixture
def cell(made):
    return made


@pytest.fixture
def api(made):
    return made


def lacking(release, *table_names):
    later = nova_layouts.LATER if release == NEWTON else {}
    return sorted(f"{table}.{name}" for table in table_names for name in later.get(table, ()))


def test_a_cell_database_says_what_it_lacks(cell, release):
    found = cell.layout
    assert found.is_nova
    assert found.missing(layout.CELL_TABLES) == lacking(release, *layout.CELL_TABLES)
    assert found.has("compute_nodes", "mapped") == (release == TODAY)
    assert (found.has("cell_mappings"), found.soft_deleted) == (False, set(nova_layouts.MOVED))


def test_an_api_database_says_what_it_lacks(api, release):
    assert api.layout.missing(layout.API_TABLES) == lacking(release, *layout.API_TABLES)
    assert api.layout.soft_deleted == frozenset()


def test_services_and_servers_are_written_and_read(cell, release):
    server = instance(host="h1")
    with cell.write() as conn:
        registration.put_services(conn, ["h1", "h2"], 74)
        services.get_or_create(conn, "ctl", "nova-scheduler", "scheduler", 74)
        services.change(conn, "h2", "nova-compute", forced_down=True)
        (first, second) = services.list_all(conn, "nova-compute")
        server_rows.create_instance(conn, server)
        found = instances.get(conn, server.uuid)
        server_rows.disks_of(conn, server.uuid)
    assert first.is_set("uuid") == (release == TODAY)
    assert (first.host, first.version) == ("h1", 74)
    assert (first.forced_down, second.forced_down) == (False, True)
    assert (found.host, found.flavor.name) == ("h1", "big")


def test_the_fleet_is_read(cell):
    values = node_values(free_disk_gb=50, free_ram_mb=100, host="h1", hypervisor_hostname="n1")
    with cell.write() as conn:
        registration.put_services(conn, ["h1"], 74)
        services.change(conn, "h1", "nova-compute", disabled=True)
        registration.put_nodes(conn, [values])
        (node,) = compute_nodes.list_all(conn)
    reader = FleetReader(cell, datetime.timedelta(seconds=60))
    changes = reader.read(NOW)
    assert [(row.host, row.free_ram_mb) for row in changes.nodes] == [("h1", 100)]
    assert [(row.host, row.disabled) for row in changes.services] == [("h1", True)]
    with cell.write() as conn:
        registration.update_node(conn, node.id, {"free_ram_mb": 50, "mapped": 1}, NOW)
    changes = reader.read(NOW)
    assert (changes.full, [row.free_ram_mb for row in changes.nodes]) == (False, [50])
    assert changes.services is None
    with cell.write() as conn:
        services.change(conn, "h1", "nova-compute", disabled=False)
    changes = reader.read(NOW)
    assert [(row.host, row.disabled) for row in changes.changed_services] == [("h1", False)]


def test_api_tables_are_written_and_read(api):
    with api.write() as conn:
        flavors.create(conn, flavor(extra_specs={"a": "b"}))
        aggregates.create(conn, "zone", {"availability_zone": "z"}, ["h1"])
        group = groups.create(conn, "g", "anti-affinity", {"max_server_per_host": 2})
        server = instance()
        server_rows.create_build_request(conn, server)
        assert flavors.get(conn, "name", "big").extra_specs == {"a": "b"}
        assert [each.hosts for each in aggregates.list_all(conn)] == [["h1"]]
        assert groups.get(conn, group.uuid).policy == "anti-affinity"
        assert len(server_rows.list_build_requests(conn)) == 1
        assert list_cells(conn) == []


@pytest.mark.parametrize("release", [NEWTON])
def test_an_absent_column_is_null_wherever_it_stands(cell):
    table = tables.services
    statements = {
        "whole table": sa.select(table).where(table.c.uuid == "x"),
        "function": sa.select(sa.func.max(table.c.uuid)),
        "coalesced": sa.select(sa.func.coalesce(table.c.uuid, "none")).order_by(table.c.uuid),
    }
    with cell.write() as conn:
        registration.put_services(conn, ["h1"], 74)
        found = {name: conn.execute(each).all() for name, each in statements.items()}
        plain = conn.execute(
            cell.layout.fitted(sa.select(table.c.host, table.c.uuid), cell.dialect_name)
        ).one()
    assert found == {"whole table": [], "function": [(None,)], "coalesced": [("none",)]}
    assert (plain.host, plain.uuid) == ("h1", None)


@pytest.mark.parametrize("release", [NEWTON])
def test_a_node_without_a_host_is_on_that_of_its_service(cell):
    table = tables.compute_nodes
    with cell.write() as conn:
        ids = registration.put_services(conn, ["h1", "h2"], 15)
        for node in ("n1", "n2"):
            put_node(conn, "h2", node, node_values(free_disk_gb=1))
        old = {"host": None, "service_id": ids["h1"]}
        conn.execute(table.update().where(table.c.hypervisor_hostname == "n1").values(old))
        assert [each.host for each in compute_nodes.list_all(conn)] == ["h1", "h2"]
        assert [each.host for each in compute_nodes.list_all(conn, "h1")] == ["h1"]
        registration.update_node(conn, 1, {"free_ram_mb": 5})
        put_node(conn, "h2", "n2", node_values(free_ram_mb=7))
        assert [each.free_ram_mb for each in compute_nodes.list_all(conn)] == [5, 7]
    changes = FleetReader(cell, datetime.timedelta(seconds=60)).read(NOW)
    assert [row.host for row in changes.nodes] == ["h1", "h2"]


def test_havanas_nodes_have_no_host_at_all(empty_url):
    made = nova_layouts.metadata(NEWTON, CELL)
    for name in ("uuid", "host", "metrics", "ram_allocation_ratio"):
        made.tables["compute_nodes"]._columns.remove(made.tables["compute_nodes"].c[name])
    made.tables["compute_nodes"].constraints = {made.tables["compute_nodes"].primary_key}
    database = Database(empty_url)
    with sa.create_engine(empty_url, poolclass=sa.NullPool).begin() as connection:
        made.create_all(connection)
        connection.exec_driver_sql("CREATE TABLE migrate_version (version INTEGER)")
    with database.write() as conn:
        ids = registration.put_services(conn, ["h1"], 1)
        values = node_values(free_disk_gb=1, service_id=ids["h1"], hypervisor_hostname="n1")
        rows.insert(conn, tables.compute_nodes, **{**registration.NODE_DEFAULTS, **values})
    changes = FleetReader(database, datetime.timedelta(seconds=60)).read(NOW)
    database.dispose()
    assert [(row.host, row.uuid, row.metrics) for row in changes.nodes] == [("h1", None, None)]
