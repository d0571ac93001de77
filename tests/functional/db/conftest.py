"""The tests of the queries once more, on MariaDB and PostgreSQL."""

import pytest
import sqlalchemy as sa

from scheduler.db import tables
from tests.unit.conftest import SETTINGS
from tests.unit.db.conftest import conn  # noqa: F401
from tests.world import databases

pytest.register_assert_rewrite("tests.unit.db")


def _synced(server):
    name = server.create_database()
    with databases.synced(server.url(name), settings=SETTINGS) as database:
        yield database
    server.drop_database(name)


@pytest.fixture(scope="session")
def synced_mariadb(mariadb):
    """A database that all tests share."""
    yield from _synced(mariadb)


@pytest.fixture(scope="session")
def synced_postgresql(postgresql):
    """A database that all tests share."""
    yield from _synced(postgresql)


@pytest.fixture(params=["mariadb", "postgresql"])
def database(request):
    """A database with all tables and what ``db sync`` fills in, put back after each test."""
    database = request.getfixturevalue(f"synced_{request.param}")
    first_content = {}
    with database.read() as connection:
        for table in (tables.flavors, tables.cell_mappings):
            found = connection.execute(sa.select(table)).mappings()
            first_content[table] = [dict(row) for row in found]
    yield database
    with database.write() as connection:
        for table in reversed(tables.metadata.sorted_tables):
            connection.execute(table.delete())
        for table, rows in first_content.items():
            connection.execute(table.insert(), rows)


@pytest.fixture(params=["mariadb", "postgresql"])
def empty_url(request):
    return str(request.getfixturevalue(f"{request.param}_url"))
