"""What tests/unit/db says about transactions and migrations, on servers, and greenlets."""

import os
import subprocess
import sys

import pytest
from oslo_db.exception import DBError
from sqlalchemy.exc import DBAPIError

from scheduler.db.database import Database
from tests.unit.db.builders import schema_differences
from tests.unit.db.test_database import (  # noqa: F401
    test_a_new_read_sees_what_others_committed,
    test_a_transaction_is_tried_again_a_few_times,
    test_connection_lost_in_the_commit_is_not_retried,
    test_foreign_keys_are_enforced,
    test_reading_and_then_writing_loses_no_update,
    test_write_commits_and_an_error_rolls_back,
)
from tests.unit.db.test_migration import (  # noqa: F401
    test_daemons_of_the_version_before_go_on_through_an_upgrade,
    test_second_sync_leaves_the_rows_alone,
)
from tests.world import databases

GREENLETS = """
import sys
from scheduler import concurrency
concurrency.activate(concurrency.EVENTLET)
import eventlet
from scheduler.db.database import Database
from scheduler.db.tables import services

database = Database(sys.argv[1])
locked, order = eventlet.Event(), []

def first():
    with database.write() as connection:
        connection.execute(services.update().values(report_count=1))
        locked.send()
        for _ in range(50):
            eventlet.sleep(0.01)
        order.append("first")

def second():
    locked.wait()
    with database.write() as connection:
        connection.execute(services.update().values(report_count=2))
        order.append("second")

for greenlet in [eventlet.spawn(second), eventlet.spawn(first)]:
    greenlet.wait()
print(*order)
"""


def test_every_statement_sees_what_is_committed(database):
    with database.read() as conn:
        assert conn.get_isolation_level() == "READ COMMITTED"


def test_schema_on_a_new_database(database_url):
    with databases.synced(database_url) as database:
        assert schema_differences(database) == []


def test_a_greenlet_waiting_for_a_lock_lets_its_holder_go_on(database_url):
    """A driver that waits without yielding would wait for ever."""
    with databases.synced(database_url):
        statement = "INSERT INTO services (host, report_count) VALUES ('h', 0)"
        databases.query(database_url, statement)
    environ = {name: value for name, value in os.environ.items() if name != "PSYCOPG_WAIT_FUNC"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", GREENLETS, database_url],
        env=environ,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("first second\n", 0), done.stderr


@pytest.mark.parametrize("wrong", ["password", "name"])
def test_server_that_refuses_is_an_error_at_once(mariadb_url, wrong):
    url = Database(mariadb_url).url
    url = url.set(password="wrong") if wrong == "password" else url.set(database="no_such")
    with pytest.raises((DBAPIError, DBError), match=r"denied|Unknown database"):
        Database(url).engine.connect()
