"""``upgrade check``: each thing that it looks at, well and not."""

import json

import pytest

WELL = {
    "Databases": "Success",
    "Claims": "Success",
    "Message broker": "Warning",  # these tests have none
    "Driver, filters and weighers": "Success",
    "Deprecated options": "Success",
}


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


def test_all_is_well_but_for_the_bus_of_these_tests(check, database):
    assert results(check()) == WELL


def test_tables_that_are_not_there(check):
    rows = check(status=2)
    assert rows["Databases"]["result"] == "Failure"
    assert "db sync" in rows["Databases"]["details"]
    assert rows.keys() == WELL.keys()


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
