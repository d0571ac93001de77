"""A connection that one reader keeps, so that a question costs one round trip and nothing else.

A pooled connection is asked whether it still lives when it is taken, and rolled back when it is
given back: three round trips for one question.  Here every statement is a transaction of its own,
or several together see one moment, on a connection that stays open; one that the server has closed
in the meantime shows at the first statement, and is replaced once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TypeVar

from oslo_db import exception as db_exception
from sqlalchemy import Connection

from scheduler.db import layout as layouts
from scheduler.db.database import Database
from scheduler.db.kept_connection import KeptConnection

Result = TypeVar("Result")

#: What a new connection is told first.  MySQL and MariaDB cut lists that are put together in the
#: server at so many bytes, and only at this level, which need not be the server's default, do
#: several statements see one moment.
_PREPARATIONS: dict[str, tuple[str, ...]] = {
    "mysql": (
        "SET SESSION group_concat_max_len = 1073741824",
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    )
}
#: What begins a transaction whose statements all see the moment of its beginning.  With SQLite
#: every use of a connection is one.
_SNAPSHOTS = {
    "mysql": "START TRANSACTION WITH CONSISTENT SNAPSHOT",
    "postgresql": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
}


class ReadSession(KeptConnection):
    """Reads of one *database* by one caller at a time."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._is_one_moment = False

    def run(self, ask: Callable[[Connection], Result]) -> Result:
        """Call *ask* with a connection, and again with a new one if the kept one was broken.

        Raises oslo.db's errors when the database does not answer.
        """
        was_kept = self._kept is not None
        try:
            with self._connection() as connection:
                return ask(connection)
        except db_exception.DBConnectionError:
            if not was_kept:
                raise
        with self._connection() as connection:
            return ask(connection)

    @contextlib.contextmanager
    def one_moment(self) -> Iterator[None]:
        """Within it all runs see the database as of one moment, that of the outermost beginning.

        SQLite sees one moment per run only.
        """
        begin = _SNAPSHOTS.get(self.database.dialect_name)
        if begin is None or self._is_one_moment:
            yield
            return
        self._is_one_moment = True
        try:
            self._tell(begin)
            yield
            self._tell("COMMIT")
        except BaseException:
            self.close()  # it would go on seeing that moment
            raise
        finally:
            self._is_one_moment = False

    def _tell(self, statement: str) -> None:
        with self._connection() as connection:
            connection.exec_driver_sql(statement)

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Connection]:
        if self.database.dialect_name == "sqlite":
            # No round trips to save; an open transaction would go on seeing the old state.
            with self.database.read() as connection:
                yield connection
            return
        try:
            if self._kept is None:
                self._kept = self._open()
            yield self._kept
        except BaseException:
            self.close()
            raise

    def _open(self) -> Connection:
        layout = self.database.layout
        connection = self.database.engine.connect()
        try:
            connection = connection.execution_options(isolation_level="AUTOCOMMIT")
            connection = layouts.noted(connection, layout)
            for statement in _PREPARATIONS.get(self.database.dialect_name, ()):
                connection.exec_driver_sql(statement)
        except BaseException:
            connection.close()
            raise
        return connection
