"""``db advise``."""

import json

import pytest
import sqlalchemy as sa

from scheduler import exit_codes

NOTHING = "Nothing is needed.\n"
INDEX = "compute_nodes_updated_at_idx"


@pytest.fixture
def advise(run, database):
    """Run the command; give its rows, and what it says besides."""

    def advise(*words):
        status, out, remark = run("db", "advise", *words, "-f", "json")
        assert status == exit_codes.OK
        return json.loads(out), remark

    return advise


def states(rows):
    return {row["index"]: row["state"] for row in rows}


def test_our_own_tables_have_all_indexes(advise):
    rows, remark = advise()
    assert set(states(rows).values()) == {"present"}
    assert remark == NOTHING


def test_what_is_missing_is_created_when_told_so_and_once(advise, database):
    with database.write() as connection:
        connection.execute(sa.text(f"DROP INDEX {INDEX}"))
    for words, state in [((), "missing"), (("--apply",), "created"), (("--apply",), "present")]:
        rows, remark = advise(*words)
        found = states(rows)
        assert found.pop(INDEX) == state
        assert set(found.values()) == {"present"}
        assert remark == (NOTHING if state == "present" else "")
    with database.read() as connection:
        names = {each["name"] for each in sa.inspect(connection).get_indexes("compute_nodes")}
    assert INDEX in names


def test_nothing_is_created_where_nothing_may_be_written(refused, database, config_file):
    with database.write() as connection:
        connection.execute(sa.text(f"DROP INDEX {INDEX}"))
    with open(config_file, "a") as file:
        file.write("read_only = true\n")
    assert "read_only" in refused("db", "advise", "--apply")
