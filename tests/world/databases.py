"""Databases for a moment: by the project's own code, and in plain SQL apart from it."""

import contextlib
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from scheduler.db import migration
from scheduler.db.database import Database


@contextlib.contextmanager
def opened(url: str, **options: Any) -> Iterator[Database]:
    database = Database(url, **options)
    try:
        yield database
    finally:
        database.dispose()


@contextlib.contextmanager
def synced(url: str, **options: Any) -> Iterator[Database]:
    """The same with all its tables, as ``db sync`` leaves it."""
    with opened(url, **options) as database:
        migration.sync(database)
        yield database


def transaction(url: str) -> contextlib.AbstractContextManager[sa.Connection]:
    """A transaction on a connection of its own."""
    return sa.create_engine(url, poolclass=sa.NullPool).begin()


def query(url: str, statement: str, **values: Any) -> list[dict[str, Any]]:
    """Run one statement; its rows, if it has any."""
    with transaction(url) as connection:
        done = connection.execute(sa.text(statement), values)
        return [dict(row) for row in done.mappings()] if done.returns_rows else []


def nodes(url: str) -> dict[str, str]:
    """The uuid of every host's node, in SQL apart from the project's own queries."""
    found = query(url, "SELECT host, uuid FROM compute_nodes WHERE deleted = 0")
    return {row["host"]: row["uuid"] for row in found}
