"""Reads of the aggregates, and a cheap check that they have not changed."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from scheduler import objects
from scheduler.db import aggregates as aggregate_rows
from scheduler.db import fleet_rows, tables
from scheduler.db.changed_rows import Answers, Query
from scheduler.db.database import Database
from scheduler.db.dialects import Dialect
from scheduler.db.sessions import ReadSession

_SPREAD = 1021


class AggregateReader:
    """The aggregates of one *database*, read again when they have changed.

    Where triggers count their changes, one number is compared.  Elsewhere the server sums up the
    contents of the small tables.  Members are inserted and deleted but never updated, so these
    are counted.
    """

    def __init__(self, database: Database) -> None:
        self._dialect = Dialect(database.dialect_name)
        self._session = ReadSession(database)
        self._queries: dict[str, Query] | None = None
        self._seen: tuple[Any, ...] | None = None

    def queries(self, *, counted: bool) -> dict[str, Query]:
        """By name the values that differ after a change; *counted*: triggers count changes."""
        if counted:
            queries = {"aggregates": fleet_rows.counter("aggregates")}
        else:
            queries = {
                **self._content(tables.aggregates),
                **self._content(tables.aggregate_metadata),
                # SQLite gives the id of a row that is gone to the next one.
                **(
                    self._content(tables.aggregate_hosts)
                    if self._dialect.name == "sqlite"
                    else _members()
                ),
            }
        self._queries = queries
        return queries

    def have_changed(self, answers: Answers) -> bool:
        """Return True when the *answers* to :meth:`queries` differ from the last ones."""
        found = tuple(answers[name] for name in self._queries or ())
        changed, self._seen = found != self._seen, found
        return changed

    def read(
        self, now: datetime.datetime, *, full: bool = False
    ) -> Sequence[objects.Aggregate] | None:
        """All aggregates; None if nothing changed since the last read, unless *full*.

        *now* plays no part.  Raises oslo.db's errors when the database does not answer.
        """
        del now
        try:
            return self._session.run(lambda connection: self._read(connection, full=full))
        except BaseException:
            self._seen = None
            raise

    def _read(self, connection: sa.Connection, *, full: bool) -> Sequence[objects.Aggregate] | None:
        if self._queries is None:
            self.queries(counted="aggregates" in fleet_rows.counters(connection))
        statement = sa.select(*(each.label(name) for name, each in (self._queries or {}).items()))
        changed = self.have_changed(connection.execute(statement).mappings().one())
        return aggregate_rows.list_all(connection) if changed or full else None

    def forget(self) -> None:
        """Take the next answers for a change."""
        self._seen = None

    def close(self) -> None:
        """Give the connection up."""
        self._session.close()

    def _content(self, table: sa.Table) -> dict[str, Query]:
        row_id = sa.cast(table.c.id, sa.BigInteger)
        version = sa.cast(self._dialect.version(table, list(table.c)), sa.BigInteger)
        return {
            f"{table.name}_rows": sa.select(sa.func.count()).select_from(table).scalar_subquery(),
            f"{table.name}_content": sa.select(
                sa.func.sum(version * (row_id % _SPREAD + 1))
            ).scalar_subquery(),
        }


def _members() -> dict[str, Query]:
    table = tables.aggregate_hosts
    return {
        "members": sa.select(sa.func.count()).select_from(table).scalar_subquery(),
        "members_ids": sa.select(sa.func.sum(sa.cast(table.c.id, sa.BigInteger))).scalar_subquery(),
        "members_updated_at": sa.select(
            sa.cast(sa.func.max(table.c.updated_at), sa.Text)
        ).scalar_subquery(),
    }
