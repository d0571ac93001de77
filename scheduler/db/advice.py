"""Which indexes the reads of changed rows want, and creating those that a database lacks.

A database that Nova made has none on the timestamps, so a scheduler that looks for what changed
goes through whole tables there.  They are created only for an operator who says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import sqlalchemy as sa

from scheduler.db import tables
from scheduler.db.database import Database

#: Table and columns of each.
_WANTED = (
    (tables.compute_nodes, ("updated_at",)),
    (tables.compute_nodes, ("created_at",)),
    (tables.compute_nodes, ("deleted_at",)),
    (tables.compute_nodes, ("deleted", "id")),
    (tables.services, ("updated_at",)),
    (tables.services, ("binary", "deleted", "id")),
    (tables.services, ("deleted", "disabled")),
    (tables.services, ("deleted", "forced_down")),
    (tables.instances, ("updated_at",)),
    (tables.instances, ("created_at",)),
    (tables.instances, ("deleted_at",)),
)


@dataclass(frozen=True)
class WantedIndex:
    """An index on *columns* of *table*; *exists* if one begins with them."""

    table: str
    columns: tuple[str, ...]
    exists: bool

    @property
    def name(self) -> str:
        """What it is called when it is created here."""
        return f"{self.table}_{'_'.join(self.columns)}_idx"


def wanted(database: Database) -> list[WantedIndex]:
    """The indexes that help, as far as the *database* has their columns."""
    with database.read() as connection:
        inspector = sa.inspect(connection)
        found = []
        for table, columns in _WANTED:
            there = {each["name"] for each in inspector.get_columns(table.name)}
            if there.issuperset(columns):
                beginnings = _beginnings(inspector, table.name)
                found.append(WantedIndex(table.name, columns, columns in beginnings))
        return found


def create(database: Database, indexes: Iterable[WantedIndex]) -> None:
    """Create the *indexes*.

    Raises DatabaseReadOnly, and oslo.db's errors where the server does not allow it.
    """
    for index in indexes:
        table = sa.Table(index.table, sa.MetaData(), *map(sa.Column, index.columns))
        made = sa.Index(index.name, *(table.c[name] for name in index.columns))
        with database.write() as connection:
            made.create(connection)


def _beginnings(inspector: sa.Inspector, table: str) -> set[tuple[str | None, ...]]:
    """The columns that each index, unique or not, begins with, for every length."""
    several = [tuple(each["column_names"]) for each in inspector.get_indexes(table)]
    several += [tuple(each["column_names"]) for each in inspector.get_unique_constraints(table)]
    return {each[:length] for each in several for length in range(1, len(each) + 1)}
