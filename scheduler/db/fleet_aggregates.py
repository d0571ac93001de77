"""Reading the aggregates, and seeing cheaply that they are as they were."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from scheduler import objects
from scheduler.db import aggregates as aggregate_rows
from scheduler.db import change_counters, tables
from scheduler.db.database import Database
from scheduler.db.fleet_windows import Answers, Question
from scheduler.db.fragments import Fragments
from scheduler.db.read_session import ReadSession

_SPREAD = 1021


class AggregateReader:
    """The aggregates of one *database*; remembers what they looked like.

    Where triggers count their changes, one number tells.  Elsewhere the contents of the small
    tables are summed up by the server, and the members, which are put in and taken out but never
    changed, are counted.
    """

    def __init__(self, database: Database) -> None:
        self._sql = Fragments(database.dialect_name)
        self._session = ReadSession(database)
        self._questions: dict[str, Question] | None = None
        self._seen: tuple[Any, ...] | None = None

    def questions(self, *, counted: bool) -> dict[str, Question]:
        """By name what tells whether something changed; *counted*: triggers count it."""
        if counted:
            questions = {"aggregates": change_counters.question("aggregates")}
        else:
            questions = {
                **self._content(tables.aggregates),
                **self._content(tables.aggregate_metadata),
                # SQLite gives the id of a row that is gone to the next one.
                **(
                    self._content(tables.aggregate_hosts)
                    if self._sql.name == "sqlite"
                    else _members()
                ),
            }
        self._questions = questions
        return questions

    def have_changed(self, answers: Answers) -> bool:
        """Whether the *answers* to :meth:`questions` are others than the last time."""
        found = tuple(answers[name] for name in self._questions or ())
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
        if self._questions is None:
            self.questions(counted="aggregates" in change_counters.counted(connection))
        statement = sa.select(*(each.label(name) for name, each in (self._questions or {}).items()))
        changed = self.have_changed(connection.execute(statement).one()._mapping)
        return aggregate_rows.list_all(connection) if changed or full else None

    def forget(self) -> None:
        """Take the next answers for a change."""
        self._seen = None

    def close(self) -> None:
        """Give the connection up."""
        self._session.close()

    def _content(self, table: sa.Table) -> dict[str, Question]:
        row_id = sa.cast(table.c.id, sa.BigInteger)
        version = sa.cast(self._sql.version(table, list(table.c)), sa.BigInteger)
        return {
            f"{table.name}_rows": sa.select(sa.func.count()).select_from(table).scalar_subquery(),
            f"{table.name}_content": sa.select(
                sa.func.sum(version * (row_id % _SPREAD + 1))
            ).scalar_subquery(),
        }


def _members() -> dict[str, Question]:
    table = tables.aggregate_hosts
    return {
        "members": sa.select(sa.func.count()).select_from(table).scalar_subquery(),
        "members_ids": sa.select(sa.func.sum(sa.cast(table.c.id, sa.BigInteger))).scalar_subquery(),
        "members_updated_at": sa.select(
            sa.cast(sa.func.max(table.c.updated_at), sa.Text)
        ).scalar_subquery(),
    }
