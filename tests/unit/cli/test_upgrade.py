"""``upgrade check``: each thing that it looks at, well and not."""

import datetime
import json

import pytest
import sqlalchemy as sa

from scheduler.db import services, tables

WELL = {
    "Databases": "Success",
    "Claims": "Success",
    "Message broker": "Warning",  # these tests have none
    "Driver, filters and weighers": "Success",
    "Deprecated options": "Success",
    "Schedulers": "Success",
    "Compute hosts": "Success",
}

LONG_AGO = datetime.datetime(2020, 1, 1)


@pytest.fixture
def check(config_file, run):
    """Result and details by check; *lines* are further configuration."""

    def check(*lines, status=1, bus="fake://"):
        with open(config_file, "a", encoding="utf-8") as file:
            file.write("\n".join(["[DEFAULT]", f"transport_url = {bus}", *lines, ""]))
        result, out, _err = run("upgrade", "check", "-f", "json")
        assert result == status
        return {row["check"]: row for row in json.loads(out)}

    return check


def results(rows):
    return {name: row["result"] for name, row in rows.items()}


def test_all_is_well_but_for_the_bus_of_these_tests(check, database, add_host):
    add_host("h1")
    with database.write() as connection:
        services.get_or_create(connection, "c1", "nova-scheduler", "scheduler", 1)
    assert results(check()) == WELL


def test_tables_that_are_not_there(check):
    rows = check(status=2)
    assert rows["Databases"]["result"] == "Failure"
    assert "db sync" in rows["Databases"]["details"]
    assert rows.keys() == WELL.keys() - {"Schedulers", "Compute hosts"}


OLD_NAME = ["scheduler_default_filters = RamFilter"]
NO_SUCH_FILTER = ["[filter_scheduler]", "enabled_filters = NoSuchFilter"]
NOWHERE = ["[claims]", "connection = sqlite:////nowhere/x", "[scheduler]", "claims = database"]


@pytest.mark.parametrize(
    ("lines", "name", "status", "words"),
    [
        (OLD_NAME, "Deprecated options", 1, "[DEFAULT] scheduler_default_filters"),
        (NO_SUCH_FILTER, "Driver, filters and weighers", 2, "NoSuchFilter"),
        (NOWHERE, "Claims", 2, "/nowhere/x"),
    ],
)
def test_what_is_configured(check, database, lines, name, status, words):
    row = check(*lines, status=status)[name]
    assert row["result"] == ("Warning", "Failure")[status - 1]
    assert words in row["details"]


def test_a_broker_that_is_not_there(check, database):
    row = check(status=2, bus="rabbit://u:my-secret@127.0.0.1:1/")["Message broker"]
    assert row["result"] == "Failure"
    assert "unreachable" in row["details"]
    assert "my-secret" not in row["details"]


def test_a_scheduler_that_is_silent(check, database):
    with database.write() as connection:
        services.get_or_create(connection, "c1", "nova-scheduler", "scheduler", 1)
        connection.execute(sa.update(tables.services).values(created_at=LONG_AGO))
    row = check()["Schedulers"]
    assert (row["result"], row["details"]) == ("Warning", "no scheduler sends heartbeats: c1")


def test_compute_nodes_that_cannot_be_chosen(check, database, add_host):
    for name in ("h1", "h2"):
        add_host(name)
    with database.write() as connection:
        nodes, known = tables.compute_nodes, tables.services
        connection.execute(sa.delete(known).where(known.c.host == "h1"))
        lost = sa.update(nodes).where(nodes.c.host == "h2").values(free_disk_gb=None)
        connection.execute(lost)
    details = check()["Compute hosts"]["details"]
    assert "without a service, and so never chosen: h1" in details
    assert "usage not reported yet: h2" in details
