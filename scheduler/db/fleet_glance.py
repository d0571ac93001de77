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
from scheduler.db.fleet_heartbeats import HeartbeatReader
from scheduler.db.fleet_windows import Answers, Question, TouchedRows
from scheduler.db.fragments import Fragments

_BETWEEN = "|"
_ABSENT = "~"


class Glance:
    """One of *database* by one reader, whose looks ask the *questions* besides what *rows* ask.

    *beaten* knows those who send heartbeats, which are not asked for by every look.
    """

    def __init__(
        self,
        database: Database,
        questions: Mapping[str, Question],
        rows: Sequence[TouchedRows],
        beaten: HeartbeatReader,
    ) -> None:
        self._database = database
        self._names = tuple(questions)
        self._rows = rows
        self._beaten = beaten
        self._statement = self._question(list(questions.values()))
        self._sql: str | None = None
        self._seen: str | None = None

    def note(self, answers: Answers) -> None:
        """Remember what a look has shown."""
        texts = [answers[name] for name in self._names]
        self._seen = _BETWEEN.join(_ABSENT if each is None else str(each) for each in texts)

    def shows_nothing(
        self, connection: sa.Connection, since: int, heard_since: int | None = None
    ) -> bool:
        """Whether all is as it was noted, and nothing was touched in the second *since* or later.

        Nor was any heartbeat sent since *heard_since*, if that is given.  It may deny that where a
        look would find nothing either, and never affirms it otherwise.
        """
        if not all(each.is_quiet(since) for each in self._rows):
            return False
        if heard_since is not None and not self._beaten.is_quiet(heard_since):
            return False
        if self._sql is None:
            self._sql = self._in_sql(connection)
        answer = connection.exec_driver_sql(self._sql).scalar_one()
        newest, heard, state = answer.split(_BETWEEN, 2)
        if heard_since is not None and int(heard) >= heard_since:
            return False
        return bool(state == self._seen and int(newest) < since)

    def _in_sql(self, connection: sa.Connection) -> str:
        fitted: Any = self._database.fitted(self._statement)
        compiled = fitted.compile(
            dialect=connection.dialect, compile_kwargs={"literal_binds": True}
        )
        return str(compiled)

    def _question(self, questions: Sequence[Question]) -> sa.Select[Any]:
        sql = Fragments(self._database.dialect_name)
        newest = sql.largest(*(latest for each in self._rows for latest in each.newest()))
        state = [sql.text_or(each, _ABSENT) for each in questions]
        return sa.select(sql.joined(newest, *self._beaten.newest(), *state, separator=_BETWEEN))
