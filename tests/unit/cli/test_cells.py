"""The commands on the databases of a Nova: an API database, cell0 and cells."""

import json
import pathlib

import pytest
import sqlalchemy as sa

from scheduler import exit_codes
from scheduler.db import services, tables
from tests.novas import Nova

AWAY = "mysql+pymysql://u:keepquiet@127.0.0.1:1/b"


@pytest.fixture
def nova(make_url):
    return Nova(make_url, cells={"a": ["a1"], "b": ["b1"]})


@pytest.fixture
def on_nova(nova, config_file):
    """Make the configuration name the databases."""
    configure(config_file, nova.urls["cell0"], nova.urls["api"])


def configure(config_file, main, api):
    text = f"[database]\nconnection = {main}\nmax_retries = 0\n"
    api = f"[api_database]\nconnection = {api}\nmax_retries = 0\n"
    pathlib.Path(config_file).write_text(text + api)


@pytest.mark.usefixtures("on_nova")
def test_hosts_and_services_of_all_cells(manage, nova):
    rows = manage("host", "list")
    assert [(row["host"], row["cell"]) for row in rows] == [("a1", "a"), ("b1", "b")]
    assert manage("host", "show", "b1")["host"] == "b1"
    listed = manage("service", "list")
    assert [row["host"] for row in listed] == ["a1", "b1"]
    manage("service", "set", "b1", "nova-compute", "--disable")
    assert nova.change("b", services.get, "b1", "nova-compute").disabled


@pytest.mark.usefixtures("on_nova")
def test_aggregates_flavors_and_groups_are_the_apis(manage, nova):
    manage("aggregate", "create", "fast")
    manage("flavor", "create", "tiny", "--ram", "512")
    manage("group", "create", "g", "--policy", "affinity")
    for table in ("aggregates", "flavors", "instance_groups"):
        assert len(nova.execute("api", f"SELECT id FROM {table}")) == 1
    assert manage("group", "show", "g")["hosts"] == []


@pytest.mark.usefixtures("on_nova")
def test_a_cell_that_does_not_answer_is_named(nova, run):
    nova.map_cell("b", database_connection=AWAY)
    status, out, err = run("host", "list", "-f", "json")
    assert status == exit_codes.OK
    assert [row["host"] for row in json.loads(out)] == ["a1"]
    assert nova.uuids["b"] in err
    assert "keepquiet" not in err


@pytest.fixture
def check(run):
    """Run ``db check``; give its status, and its rows by what names the database."""

    def check():
        status, out, err = run("db", "check", "-f", "json")
        assert "keepquiet" not in out + err
        return status, {row["named_by"].split(" (")[0]: row for row in json.loads(out)}

    return check


@pytest.mark.usefixtures("on_nova")
def test_check_of_databases_that_are_right(check):
    status, rows = check()
    assert status == exit_codes.OK
    assert [*rows] == ["[database] connection", "[api_database] connection", "cell a", "cell b"]
    assert {(row["kind"], *row["missing"]) for row in rows.values()} == {("a Nova database",)}
    writes = [row["writes_service"] for row in rows.values()]
    assert (writes[0], set(writes)) == ("yes", {"yes", "not needed"})


@pytest.mark.usefixtures("on_nova")
def test_check_counts_compute_nodes_without_name_or_uuid(nova, check):
    nova.execute("a", "UPDATE compute_nodes SET uuid = NULL WHERE host = 'a1'")
    _status, rows = check()
    assert [row["incomplete_nodes"] for row in rows.values()] == [0, 0, 1, 0]


def test_check_finds_a_table_that_was_dropped(synced_database, config_file, check):
    with synced_database.write() as connection:
        connection.execute(sa.schema.DropTable(tables.claim_hosts))
    url = synced_database.url.render_as_string(hide_password=False)
    pathlib.Path(config_file).write_text(f"[database]\nconnection = {url}\n")
    status, rows = check()
    row = rows["[database] connection"]
    assert (status, row["usable"]) == (exit_codes.FAILURE, "no")
    assert row["problem"].endswith("has lost claim_hosts; restore them")


@pytest.mark.usefixtures("on_nova")
def test_check_finds_what_does_not_answer(nova, config_file, check):
    nova.map_cell("b", database_connection=AWAY)
    status, rows = check()
    assert status == exit_codes.FAILURE
    assert [row["usable"] for row in rows.values()] == ["yes", "yes", "yes", "no"]
    configure(config_file, nova.urls["cell0"], AWAY)
    status, rows = check()
    assert (status, rows["[api_database] connection"]["usable"]) == (exit_codes.FAILURE, "no")
    configure(config_file, nova.urls["cell0"], nova.urls["api"])
    with pathlib.Path(config_file).open("a", encoding="utf-8") as file:
        file.write(f"[claims]\nconnection = {AWAY}\n")
    status, rows = check()
    assert (status, rows["[claims] connection"]["usable"]) == (exit_codes.FAILURE, "no")


@pytest.mark.usefixtures("on_nova")
def test_sync_leaves_novas_tables_alone(refused, nova):
    before = nova.execute("cell0", "SELECT name, sql FROM sqlite_master ORDER BY name")
    assert "use nova-manage" in refused("db", "sync")
    assert nova.execute("cell0", "SELECT name, sql FROM sqlite_master ORDER BY name") == before


@pytest.mark.usefixtures("on_nova")
def test_indexes_are_advised_where_hosts_are_read_and_not_for_cell0(manage):
    rows = manage("db", "advise")
    assert {row["cell"] for row in rows} == {"a", "b"}
