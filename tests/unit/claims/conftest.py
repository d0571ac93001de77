"""A database with all tables, hosts in it, and schedulers on it.

The tests hold on every engine: another folder runs them on servers by importing them and giving
them a ``database`` of its own.
"""

import contextlib
import os
import pathlib
import shutil
import tempfile

import pytest

from scheduler.db.database import Database
from tests.unit.claims.fleets import SETTINGS, Fleet, Worker
from tests.unit.hosts.reading import Clock


@pytest.fixture
def steps():
    """How many orders of events are tried."""
    return int(os.environ.get("CLAIM_PROTOCOL_EXAMPLES", "4"))


@pytest.fixture
def empty_database(synced_file):
    """What gives a new database, again and again within one test."""

    @contextlib.contextmanager
    def opened():
        with tempfile.TemporaryDirectory() as folder:
            path = shutil.copy(synced_file, pathlib.Path(folder) / "nova.sqlite")
            database = Database(f"sqlite:///{path}", settings=SETTINGS)
            yield database
            database.dispose()

    return opened


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def fleet(database, clock):
    return Fleet(database, clock)


@pytest.fixture
def worker(fleet, clock):
    made = []

    def make(**how):
        made.append(Worker(fleet.database, clock, **how))
        return made[-1]

    yield make
    for each in made:
        each.close()
