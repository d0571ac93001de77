"""A database with all tables, for every test of the queries.

The tests hold on every engine: another folder runs them on servers by importing them and giving
them a ``database`` of its own.
"""

import pathlib
from collections.abc import Iterator

import pytest
from sqlalchemy import Connection

from scheduler.db.database import Database


@pytest.fixture
def conn(database: Database) -> Iterator[Connection]:
    """A connection in one write transaction for the whole test."""
    with database.write() as connection:
        yield connection


@pytest.fixture
def empty_url(tmp_path: pathlib.Path) -> str:
    return f"sqlite:///{tmp_path}/empty.sqlite"
