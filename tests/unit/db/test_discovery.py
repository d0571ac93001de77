"""New hosts are mapped to their cells, by one scheduler of several."""

import pytest

from scheduler.db import migration, services
from scheduler.db.database import Database
from scheduler.db.databases import Databases, discover_hosts
from scheduler.db.rows import utcnow
from tests.builders import a_conf
from tests.novas import Nova

BINARY = "nova-scheduler"
MAPPINGS = (
    "SELECT host_mappings.host, cell_mappings.name FROM host_mappings "
    "JOIN cell_mappings ON cell_mappings.id = cell_id ORDER BY host"
)


@pytest.fixture
def nova(make_url):
    """Cells a and b, and the disabled cell off; a2 is mapped, but not known to be."""
    nova = Nova(make_url, cells={"a": ["a1", "a2"], "b": ["b1"]})
    nova.add_cell("off", ["c1"], disabled=True)
    number = nova.execute("api", "SELECT id FROM cell_mappings WHERE name = 'a'")[0][0]
    nova.execute("api", f"INSERT INTO host_mappings (host, cell_id) VALUES ('a2', {number})")
    return nova


def discover(nova: Nova, main: str = "cell0") -> list[tuple[str, str]]:
    """What is mapped after a run of the scheduler *controller*."""
    databases = Databases(Database(nova.urls[main]), Database(nova.urls["api"]))
    conf = a_conf(DEFAULT__host="controller")
    discover_hosts(conf, databases, BINARY)
    databases.dispose()
    return [tuple(row) for row in nova.execute("api", MAPPINGS)]


def add_scheduler(nova: Nova, host: str, **columns: object) -> None:
    nova.change("cell0", services.get_or_create, host, BINARY, "scheduler", 74)
    if columns:
        nova.change("cell0", services.change, host, BINARY, **columns)


ALL = [("a1", "a"), ("a2", "a"), ("b1", "b"), ("c1", "off")]


def test_hosts_of_all_cells_are_mapped_once(nova, caplog):
    caplog.set_level("INFO")
    assert discover(nova) == ALL
    assert "Discovered 3 new hosts: a:a1,b:b1,off:c1" in caplog.text
    nova.add_hosts("b", ["b2"])
    nova.execute("b", "UPDATE compute_nodes SET mapped = NULL WHERE host = 'b1'")
    assert discover(nova) == sorted([*ALL, ("b2", "b")])
    assert nova.execute("b", "SELECT mapped FROM compute_nodes ORDER BY host") == [(None,), (1,)]


@pytest.mark.parametrize(
    ("host", "columns", "does_it"),
    [
        ("another", {}, False),
        ("another", {"forced_down": True}, True),
        ("zz", {}, True),
    ],
)
def test_the_first_of_those_that_live_does_it(nova, host, columns, does_it):
    add_scheduler(nova, "controller")
    add_scheduler(nova, host, **{"last_seen_up": utcnow(), **columns})
    assert discover(nova) == (ALL if does_it else [("a2", "a")])


@pytest.mark.parametrize("url", ["sqlite:////nowhere/a.sqlite", "nosuch://u:p@h/nova"])
def test_a_cell_that_cannot_be_used_is_left_to_the_next_run(nova, caplog, url):
    nova.map_cell("a", database_connection=url)
    assert discover(nova) == [("a2", "a"), ("b1", "b"), ("c1", "off")]
    assert "Hosts of cell a are not mapped" in caplog.text


def test_an_undivided_fleet_has_nothing_to_map(make_url):
    nova = Nova(make_url)
    nova.urls["main"] = make_url()
    database = Database(nova.urls["main"])
    migration.sync(database)
    database.dispose()
    assert discover(nova, "main") == []
