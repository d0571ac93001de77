"""Records in the database: written in the background, purged, never where they do not belong."""

import pytest
import sqlalchemy as sa

from scheduler import errors
from scheduler.db import decisions, migration, tables
from scheduler.db.database import Database
from scheduler.engine.record import DecisionRecord
from scheduler.explain.store import Store, check_ready
from tests.builders import a_conf


def a_record(number):
    uuids = (f"uuid-{number}", "uuid-of-all")
    return DecisionRecord(f"req-{number}", uuids, 2, 7, outcome="no_host_fits", failure="No")


def found(database, name):
    with database.read() as connection:
        return [told["request_id"] for told in decisions.find(connection, name)]


def test_a_database_that_is_away_holds_nobody_up(tmp_path, caplog):
    store = Store(Database(f"sqlite:///{tmp_path}/none/nova.sqlite"), "sched1", 7, 1000)
    for number in range(3):
        store.put(a_record(number))
    store.close()
    warnings = [each for each in caplog.records if each.levelname == "WARNING"]
    assert ["not written" in each.getMessage() for each in warnings] == [True]


def test_no_more_records_are_kept_than_asked_for(database):
    """However many come between two purges that time alone would make due."""
    store = Store(database, "sched1", 7, 200)
    for number in range(0, 1000, 50):
        store._write([a_record(number + place) for place in range(50)])
    with database.read() as connection:
        count = sa.select(sa.func.count()).select_from(tables.decisions)
        assert 200 <= connection.execute(count).scalar_one() <= 300
    assert found(database, "req-999") == ["req-999"]
    assert found(database, "req-650") == []


@pytest.mark.parametrize("kind", ["read_only", "without tables"])
def test_records_are_written_only_where_they_belong(tmp_path, kind):
    conf = a_conf(explain__database=True)
    url = f"sqlite:///{tmp_path}/nova.sqlite"
    if kind == "read_only":
        migration.sync(Database(url))
    refused = Database(url, is_read_only=kind == "read_only")
    with pytest.raises(errors.ConfigurationError, match=r"\[explain\] database"):
        check_ready(conf, refused)
    conf.set_override("database", False, group="explain")
    check_ready(conf, refused)
    assert Store.from_conf(conf, refused) is None
