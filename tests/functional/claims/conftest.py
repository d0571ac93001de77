"""The tests of database claims once more, on MariaDB and PostgreSQL."""

import contextlib
import os

import pytest

from scheduler.db import tables
from tests.functional.db.conftest import database, synced_mariadb, synced_postgresql
from tests.unit.claims.conftest import clock, fleet, worker

pytest.register_assert_rewrite("tests.unit.claims")

__all__ = ["clock", "database", "fleet", "synced_mariadb", "synced_postgresql", "worker"]


@pytest.fixture
def steps():
    """How many orders of events are tried; each takes seconds here."""
    return int(os.environ.get("CLAIM_PROTOCOL_SERVER_EXAMPLES", "1"))


@pytest.fixture
def empty_database(database):
    """What gives the database without rows, again and again within one test."""

    @contextlib.contextmanager
    def opened():
        with database.write() as conn:
            for table in reversed(tables.metadata.sorted_tables):
                conn.execute(table.delete())
        yield database

    return opened
