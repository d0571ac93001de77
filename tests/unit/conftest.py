"""An SQLite database as ``db sync`` leaves it, for whoever wants one."""

import shutil

import pytest

from tests.world import databases

#: Retries without waiting.
SETTINGS = {"db_retry_interval": 0, "db_max_retry_interval": 0, "max_retries": 1}


@pytest.fixture(scope="session")
def synced_file(tmp_path_factory):
    """An SQLite file as ``db sync`` leaves it, to be copied."""
    path = tmp_path_factory.mktemp("synced") / "nova.sqlite"
    with databases.synced(f"sqlite:///{path}"):
        return path


@pytest.fixture
def synced_database(synced_file, tmp_path):
    """A database with all tables and what ``db sync`` fills in."""
    path = shutil.copy(synced_file, tmp_path / "nova.sqlite")
    with databases.opened(f"sqlite:///{path}", settings=SETTINGS) as database:
        yield database


@pytest.fixture
def database(synced_database):
    """The same; another in folders whose tests want rows in it."""
    return synced_database


@pytest.fixture
def make_url(tmp_path):
    """Makes empty databases, of which it says the URLs."""
    count = iter(range(100))
    return lambda: f"sqlite:///{tmp_path}/{next(count)}.sqlite"
