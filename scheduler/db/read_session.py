"""A connection that one reader keeps, so that a question costs one round trip and nothing else.

A pooled connection is asked whether it still lives when it is taken, and rolled back when it is
given back: three round trips for one question.  Here every statement is a transaction of its own
on a connection that stays open; one that the server has closed in the meantime shows at the first
statement, and is replaced once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TypeVar

from oslo_db import exception as db_exception
from sqlalchemy import Connection

from scheduler.db import layout as layouts
from scheduler.db.kept_connection import KeptConnection

Result = TypeVar("Result")

#: MySQL and MariaDB cut lists that are put together in the server at this many bytes.
_LONG_LISTS = "SET SESSION group_concat_max_len = 1073741824"


class ReadSession(KeptConnection):
    """Reads of one *database* by one caller at a time."""

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
            if self.database.dialect_name == "mysql":
                connection.exec_driver_sql(_LONG_LISTS)
        except BaseException:
            connection.close()
            raise
        return connection
