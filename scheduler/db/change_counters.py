"""The counters that triggers move in our own tables (``tables/counters.py``)."""

from __future__ import annotations

import sqlalchemy as sa

from scheduler.db.tables import change_counters


def counted(connection: sa.Connection) -> frozenset[str]:
    """Names of the counters that there are; none in a database that Nova made."""
    if not sa.inspect(connection).has_table(change_counters.name):
        return frozenset()
    return frozenset(connection.execute(sa.select(change_counters.c.name)).scalars())


def question(name: str) -> sa.ScalarSelect[int]:
    """The value of one counter; NULL if it is gone."""
    table = change_counters
    return sa.select(table.c.value).where(table.c.name == name).scalar_subquery()
