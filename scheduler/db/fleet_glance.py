"""Seeing at little cost that nothing has happened since the last look.

Where the reader knows of nothing that was touched within the overlap, it need not have the server
count what was: it is enough that no timestamp is that young, and that everything else which a look
asks for is as it was.  The answer is one text, and the question one that is put into SQL once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from scheduler.db.database import Database
from scheduler.db.fleet_windows import Answers, Fragments, Question, TouchedRows

_BETWEEN = "|"
_ABSENT = "~"


class Glance:
    """One of *database* by one reader, whose looks ask the *questions* besides what *rows* ask."""

    def __init__(
        self, database: Database, questions: Mapping[str, Question], rows: Sequence[TouchedRows]
    ) -> None:
        self._database = database
        self._names = tuple(questions)
        self._rows = rows
        self._statement = _statement(
            Fragments(database.dialect_name), list(questions.values()), rows
        )
        self._sql: str | None = None
        self._seen: str | None = None

    def note(self, answers: Answers) -> None:
        """Remember what a look has shown."""
        texts = [answers[name] for name in self._names]
        self._seen = _BETWEEN.join(_ABSENT if each is None else str(each) for each in texts)

    def shows_nothing(self, connection: sa.Connection, since: int) -> bool:
        """Whether all is as it was noted, and nothing was touched in the second *since* or later.

        It may deny that where a look would find nothing either, and never affirms it otherwise.
        """
        if not all(each.is_quiet(since) for each in self._rows):
            return False
        if self._sql is None:
            self._sql = self._in_sql(connection)
        answer = connection.exec_driver_sql(self._sql).scalar_one()
        newest, _, state = answer.partition(_BETWEEN)
        return bool(state == self._seen and int(newest) < since)

    def _in_sql(self, connection: sa.Connection) -> str:
        fitted: Any = self._database.fitted(self._statement)
        compiled = fitted.compile(
            dialect=connection.dialect, compile_kwargs={"literal_binds": True}
        )
        return str(compiled)


def _statement(
    sql: Fragments, questions: Sequence[Question], rows: Sequence[TouchedRows]
) -> sa.Select[Any]:
    newest = sql.largest(*(question for each in rows for question in each.newest()))
    state = [sql.text_or(each, _ABSENT) for each in questions]
    return sa.select(sql.joined(newest, *state, separator=_BETWEEN))
