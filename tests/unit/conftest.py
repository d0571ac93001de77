"""An SQLite database as ``db sync`` leaves it, for whoever wants one."""

import shutil

import pytest

from scheduler.db import migration
from scheduler.db.database import Database

#: Retries without waiting.
SETTINGS = {"db_retry_interval": 0, "db_max_retry_interval": 0, "max_retries": 1}


@pytest.fixture(scope="session")
def synced_file(tmp_path_factory):
    """An SQLite file as ``db sync`` leaves it, to be copied."""
    path = tmp_path_factory.mktemp("synced") / "nova.sqlite"
    database = Database(f"sqlite:///{path}", settings=SETTINGS)
    migration.sync(database)
    database.dispose()
    return path


@pytest.fixture
def synced_database(synced_file, tmp_path):
    """A database with all tables and what ``db sync`` fills in."""
    path = shutil.copy(synced_file, tmp_path / "nova.sqlite")
    database = Database(f"sqlite:///{path}", settings=SETTINGS)
    yield database
    database.dispose()


@pytest.fixture
def database(synced_database):
    """The same; another in folders whose tests want rows in it."""
    return synced_database


@pytest.fixture
def make_url(tmp_path):
    """Makes empty databases, of which it says the URLs."""
    count = iter(range(100))
    return lambda: f"sqlite:///{tmp_path}/{next(count)}.sqlite"
