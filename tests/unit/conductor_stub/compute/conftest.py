"""A database of its own for every test, and two hosts on it."""

from __future__ import annotations

import pytest

from scheduler.db.database import Database
from tests.unit.conductor_stub.compute.fleets import Fleet


@pytest.fixture
def database(synced_database: Database) -> Database:
    """A SQLite database with all tables and nothing but the first content in them."""
    return synced_database


@pytest.fixture
def fleet(database: Database) -> Fleet:
    fleet = Fleet(database)
    fleet.ends.news.clear()
    return fleet
