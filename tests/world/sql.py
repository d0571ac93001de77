"""Statements in plain SQL, apart from the project's own queries."""

import contextlib
from typing import Any

import sqlalchemy as sa


def transaction(url: str) -> contextlib.AbstractContextManager[sa.Connection]:
    """A transaction on a connection of its own."""
    return sa.create_engine(url, poolclass=sa.NullPool).begin()


def query(url: str, statement: str, **values: Any) -> list[dict[str, Any]]:
    """Run one statement; its rows, if it has any."""
    with transaction(url) as connection:
        done = connection.execute(sa.text(statement), values)
        return [dict(row) for row in done.mappings()] if done.returns_rows else []
