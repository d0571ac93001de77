"""A host manager on the databases of a Nova: cells that come, go and stay away."""

import logging

import pytest
from oslo_utils import timeutils

from conductor_stub import server_rows
from conductor_stub.compute import registration
from scheduler import errors, objects
from scheduler.db import cells, services
from scheduler.db.cells import CellsReader
from scheduler.db.database import Database
from scheduler.db.databases import Databases
from scheduler.db.fleet import FleetReader
from scheduler.db.heartbeats import HEARTBEAT_SECONDS
from scheduler.hosts.candidates import narrow
from scheduler.hosts.host_manager import HostManager
from scheduler.hosts.refresh import ReadCost
from tests import builders, nova_layouts
from tests.nova_layouts import NEWTON
from tests.novas import Nova
from tests.unit.db.builders import delete_host, instance
from tests.unit.hosts.reading import Clock
from tests.waiting import wait_until

SECONDS = 60
#: This is seen with the first connection only.
TLS_URL = "mysql+pymysql://u:hidden@h/nova?ssl_ca=/nowhere/ca.pem"


@pytest.fixture
def nova(make_url):
    """Cells a and b, and the disabled cell off."""
    nova = Nova(make_url, cells={"a": ["a1", "a2"], "b": ["b1"]})
    nova.add_cell("off", ["c1"], disabled=True)
    return nova


class Managers:
    """Makes host managers, and closes what they opened."""

    def __init__(self):
        self.databases = []
        self.clock = Clock()

    def __call__(self, main, api, **options):
        databases = Databases(Database(main), Database(api), **options)
        self.databases.append(databases)
        conf = builders.a_conf()
        manager = HostManager(conf, CellsReader(conf, databases), self.clock)
        manager.refresh()
        return manager


@pytest.fixture
def managers(monkeypatch):
    monkeypatch.setattr(cells, "RETRY_SECONDS", 0.02)
    managers = Managers()
    yield managers
    for databases in managers.databases:
        databases.dispose()


@pytest.fixture
def manager(nova, managers):
    return managers(nova.urls["cell0"], nova.urls["api"])


def seen(manager, request=None):
    """The hosts, by cell, that a request may get before any filter."""
    hosts = builders.candidates(manager.table)
    narrowed = narrow(hosts, request or builders.a_request()).hosts
    return [state.host for state in narrowed.states()]


def health(manager):
    return {each.name: each.is_left_out for each in manager.cell_health()}


def is_whole(manager):
    return not any(each.is_left_out for each in manager.cell_health())


def asking_for(uuid):
    cell = objects.CellMapping(uuid=uuid)
    return builders.a_request(requested_destination=objects.Destination(cell=cell))


def hide(nova, name, tmp_path):
    """Take the database of a cell away; call the result to bring it back."""
    path = nova.urls[name].removeprefix("sqlite:///")
    nova.execute(name, "ALTER TABLE compute_nodes RENAME TO hidden")
    assert path.startswith(str(tmp_path))
    return lambda: nova.execute(name, "ALTER TABLE hidden RENAME TO compute_nodes")


def test_hosts_of_all_cells_in_the_order_of_the_cells(manager, nova):
    assert seen(manager) == ["a1", "a2", "b1"]
    assert seen(manager, asking_for(nova.uuids["off"])) == ["c1"]
    assert seen(manager, asking_for(nova.uuids["b"])) == ["b1"]
    assert manager.hosts_up("compute") == ["a1", "a2", "b1"]
    (row,) = manager.table.row_numbers(["b1"])
    assert manager.table.value(row, "cell_uuid") == nova.uuids["b"]
    assert health(manager) == {"a": False, "b": False, "off": False}


def test_what_goes_in_one_cell_leaves_the_others(manager, nova):
    """Rows of different cells have equal ids."""
    for cell, host in (("a", "a1"), ("b", "b1")):
        nova.change(
            cell, server_rows.create_instance, instance(host=host, node=host, uuid=f"on-{host}")
        )
    nova.change("a", services.change, "a2", "nova-compute", disabled=True)
    manager.refresh()
    found = manager.table.services
    assert [found[host]["disabled"] for host in ("a1", "a2", "b1")] == [False, True, False]
    nova.change("a", delete_host, "a1")
    nova.change("a", server_rows.destroy_instance, "on-a1")
    for read in (manager.refresh, manager.refresh_everything):
        read()
        assert seen(manager) == ["a2", "b1"]
        assert manager.table.host_of_instance == {"on-b1": "b1"}


def test_aggregates_are_those_of_the_api_database(manager, nova):
    """They are read beside the requests."""
    for change, found in (
        (lambda: nova.add_aggregate(1, "zone", "b1"), {"b1": ["zone"]}),
        (lambda: nova.execute("api", "DELETE FROM aggregate_hosts"), {}),
    ):
        change()
        manager.clock.ahead_seconds += HEARTBEAT_SECONDS
        manager.read_beside()
        manager.refresh()
        assert aggregates_of(manager) == found


def aggregates_of(manager):
    of_host = manager.table.aggregates_of_host
    return {host: [each.name for each in found] for host, found in of_host.items()}


def test_a_cell_that_fails_is_left_out_and_comes_back_by_itself(
    manager, nova, tmp_path, caplog, monkeypatch
):
    caplog.set_level(logging.INFO)
    bring_back = hide(nova, "a", tmp_path)
    for _ in range(3):
        manager.refresh()
    assert seen(manager) == ["b1"]
    (found,) = [each for each in manager.cell_health() if each.is_left_out]
    assert (found.name, found.failures) == ("a", 1)
    assert "compute_nodes" in found.error
    warning = f"Failed to get computes for cell {nova.uuids['a']} (a)"
    assert len([each for each in caplog.messages if each.startswith(warning)]) == 1

    read, faults = FleetReader.read, [TypeError("a row that nobody foresaw")] * 2

    def read_or_break(reader, *given, **options):
        if faults:
            raise faults.pop()
        return read(reader, *given, **options)

    monkeypatch.setattr(FleetReader, "read", read_or_break)
    wait_until(lambda: not faults, SECONDS, "two errors")
    bring_back()
    assert "cannot be read" in caplog.text
    wait_until(lambda: manager.refresh() or is_whole(manager), SECONDS, "cell a")
    assert seen(manager) == ["a1", "a2", "b1"]
    assert any("answers again" in each for each in caplog.messages)
    nova.change("a", registration.update_node, 1, {"free_ram_mb": 11})
    manager.refresh()
    assert manager.table.value(manager.table.rows["a1", "a1"], "free_ram_mb") == 11


def test_no_cell_answers_is_no_answer(manager, nova, tmp_path):
    back = [hide(nova, name, tmp_path) for name in ("a", "b", "off")]
    nova.add_aggregate(1, "new", "b1")
    manager.refresh()
    assert seen(manager) == ["a1", "a2", "b1"], "the last state is fresh enough"
    with pytest.raises(errors.DatabaseUnusable, match="of cell .*sqlite"):
        manager._read_and_apply(manager.clock(), ReadCost())
    for bring_back in back:
        bring_back()
    wait_until(lambda: manager.refresh() or is_whole(manager), SECONDS, "all cells")
    assert seen(manager) == ["a1", "a2", "b1"]
    assert aggregates_of(manager) == {"b1": ["new"]}, "of a read that was used"


def test_cells_are_looked_up_again_at_a_reload(manager, nova, make_url):
    """One is new, two are switched, one has moved to another database and then goes."""
    nova.urls["a"] = make_url()
    nova_layouts.create(nova.urls["a"], nova.release, nova_layouts.CELL)
    nova.add_hosts("a", ["moved"])
    nova.map_cell("a", database_connection=nova.urls["a"])
    nova.add_cell("new", ["n1"])
    nova.map_cell("off", disabled=False)
    nova.map_cell("b", disabled=True)
    manager.refresh()
    assert seen(manager) == ["a1", "a2", "b1"]
    manager.reconfigure(builders.a_conf(), lambda: None)
    assert seen(manager) == ["moved", "c1", "n1"]
    nova.execute("api", "DELETE FROM cell_mappings WHERE name = 'a'")
    manager.clock.ahead_seconds += 10_000
    manager.refresh()
    assert seen(manager) == ["c1", "n1"]


def test_a_cell_that_comes_after_any_number_of_reloads_is_read_as_they_asked(manager, nova):
    reader = manager._reader
    server = instance(host="n1", node="n1", system_metadata={"image_os": "plan9"})
    reader.read_more(builders.a_conf(image_props_weight_multiplier=1.0))
    without = builders.a_conf()
    for _number in range(3000):  # more than calls may nest
        reader.read_more(without)
    nova.add_cell("new", ["n1"])
    manager.reconfigure(without, lambda: None)
    assert seen(manager) == ["a1", "a2", "b1", "n1"]
    nova.change("new", server_rows.create_instance, server)
    (changes,) = [each for each in reader.read(timeutils.utcnow()) if each.instances]
    assert changes.system_metadata == {server.uuid: {"image_os": "plan9"}}


def test_no_cells_are_a_warning_and_no_hosts(make_url, managers, caplog):
    nova = Nova(make_url)
    manager = managers(nova.urls["cell0"], nova.urls["api"])
    assert seen(manager) == []
    assert "No cells were found" in caplog.text


@pytest.mark.parametrize("url", ["nosuch://u:hidden@h/nova", TLS_URL])
def test_a_cell_with_a_url_that_cannot_be_used_is_left_out(nova, managers, caplog, url):
    nova.map_cell("a", database_connection=url)
    manager = managers(nova.urls["cell0"], nova.urls["api"])
    manager.read_beside()
    assert seen(manager) == ["b1"]
    assert "cell_mappings.database_connection" in caplog.text or "ssl_ca" in caplog.text
    assert not manager.is_failing
    assert "hidden" not in caplog.text


def test_newton_has_one_cell_and_aggregates_in_both_databases(make_url, managers):
    nova = Nova(make_url, NEWTON)
    nova.add_main(["h1", "h2"])
    nova.add_aggregate(1, "old", "h1", "main")
    nova.add_aggregate(2, "gone", "h1", "main")
    nova.execute("main", "UPDATE aggregates SET deleted = id WHERE name = 'gone'")
    nova.add_aggregate(3, "moved", "h1", "main")
    nova.add_aggregate(3, "new", "h2")
    manager = managers(nova.urls["main"], nova.urls["api"])
    assert seen(manager) == ["h1", "h2"]
    assert aggregates_of(manager) == {"h1": ["old"], "h2": ["new"]}
    assert manager.cell_health() == []
    (row,) = manager.table.row_numbers(["h1"])
    assert manager.table.value(row, "cell_uuid") == builders.a_conf().scheduler.cell_uuid
