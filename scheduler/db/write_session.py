"""A connection that one writer keeps, so that a transaction costs its statements and its commit.

A pooled connection is asked whether it still lives when it is taken, and rolled back when it is
given back.  Here it is asked only after it was left alone for a while.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from sqlalchemy import Connection

from scheduler.db import layout as layouts
from scheduler.db.database import FAILURES, Database
from scheduler.db.kept_connection import KeptConnection

Result = TypeVar("Result")

#: After how many seconds without a use a connection is asked whether it still lives.
IDLE_SECONDS = 1.0


class WriteSession(KeptConnection):
    """Writes to one *database* by one caller at a time."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(database)
        self._clock = clock
        self._used_at = float("-inf")

    def run(self, function: Callable[[Connection], Result]) -> Result:
        """Like :meth:`Database.write_retrying`."""
        return self.database.write_retrying(function, self._transaction)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Connection]:
        if self.database.dialect_name == "sqlite":
            # No round trips to save, and the write lock is taken at the start.
            with self.database.write() as connection:
                yield connection
            return
        connection = self._living()
        try:
            with connection.begin():
                yield connection
        except BaseException as error:
            # After an error of the caller's own the connection is as good as before.
            if isinstance(error, FAILURES) or not isinstance(error, Exception):
                self.close()
            raise

    def _living(self) -> Connection:
        if self._kept is not None and self._clock() - self._used_at > IDLE_SECONDS:
            self._ask(self._kept)
        if self._kept is None:
            self._kept = self._opened()
        self._used_at = self._clock()
        return self._kept

    def _ask(self, kept: Connection) -> None:
        try:
            kept.exec_driver_sql("SELECT 1")
            kept.rollback()
        except FAILURES:
            self.close()

    def _opened(self) -> Connection:
        self.database.check_writable()
        layout = self.database.layout
        return layouts.noted(self.database.engine.connect(), layout)
