"""Connections that one user of a database keeps open.

A connection of the pool is pinged when it is taken and rolled back when it is given back: three
round trips for a poll of one.  A session holds its connection between uses, replaces it after an
error, and is closed with its database.  A session is used by one caller at a time.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from oslo_db import exception as db_exception
from sqlalchemy import Connection

from scheduler.db.database import FAILURES, Database, is_atomic

Result = TypeVar("Result")

#: First statements of a connection for reading.  MySQL and MariaDB truncate ``group_concat`` at
#: 1 kB or 1 MB by default, and only this isolation level, not every server's default, has
#: snapshots.
_READ_SETTINGS: dict[str, tuple[str, ...]] = {
    "mysql": (
        "SET SESSION group_concat_max_len = 1073741824",
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    )
}
#: Of one for writing: PyMySQL needs 0.16 ms to escape the claim of a call by backslashes, and next
#: to nothing without.
_WRITE_SETTINGS: dict[str, tuple[str, ...]] = {
    "mysql": ("SET SESSION sql_mode = CONCAT(@@SESSION.sql_mode, ',NO_BACKSLASH_ESCAPES')",)
}
#: Beginning of a transaction whose statements see the same snapshot.  With SQLite every use of a
#: connection is one.
_SNAPSHOTS = {
    "mysql": "START TRANSACTION WITH CONSISTENT SNAPSHOT",
    "postgresql": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
}
#: A connection unused for longer, in seconds, is pinged before a write.
IDLE_SECONDS = 1.0


class _Session:
    """The connection, which begins with the *settings* of its dialect, and its end."""

    def __init__(self, database: Database, settings: Mapping[str, tuple[str, ...]]) -> None:
        self.database = database
        self._settings = settings.get(database.dialect_name, ())
        self._connection: Connection | None = None
        database.remember(self)

    def _open(self) -> Connection:
        connection = self.database.connect(isolation_level="AUTOCOMMIT")
        try:
            for statement in self._settings:
                connection.exec_driver_sql(statement)
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()
            connection.close()


class ReadSession(_Session):
    """Reads of one *database*, each statement a transaction of its own unless in a snapshot."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, _READ_SETTINGS)
        self._in_snapshot = False

    def run(self, query: Callable[[Connection], Result]) -> Result:
        """Call *query*, again if a kept connection was broken; raises oslo.db's errors."""
        is_new = self._connection is None
        try:
            with self._opened() as connection:
                return query(connection)
        except db_exception.DBConnectionError:
            if is_new:
                raise
        return self.run(query)

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Within it all runs see one snapshot; with SQLite each run has its own."""
        begin = _SNAPSHOTS.get(self.database.dialect_name)
        if begin is None or self._in_snapshot:
            yield
            return
        self._in_snapshot = True
        try:
            self._execute(begin)
            yield
            self._execute("COMMIT")
        except BaseException:
            self.close()  # its transaction would keep the old snapshot
            raise
        finally:
            self._in_snapshot = False

    def _execute(self, statement: str) -> None:
        self.run(lambda connection: connection.exec_driver_sql(statement))

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Connection]:
        if self.database.dialect_name == "sqlite":
            # No round trips to save, and an open transaction would keep the old snapshot.
            with self.database.read() as connection:
                yield connection
            return
        try:
            if self._connection is None:
                self._connection = self._open()
            yield self._connection
        except BaseException:
            self.close()
            raise


class WriteSession(_Session):
    """Writes to one *database*: each statement is a transaction, and costs a round trip.

    Where no statement can do all of a write, each run is a transaction instead.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(database, _WRITE_SETTINGS)
        self._clock = clock
        self._used_at = float("-inf")

    def run(self, function: Callable[[Connection], Result]) -> Result:
        """Call *function*, again on a deadlock; it may be done though its connection broke."""

        def attempt() -> Result:
            with self._opened() as connection:
                return function(connection)

        return self.database.retrying(attempt)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Connection]:
        if not is_atomic(self.database.engine.dialect):
            with self.database.write() as connection:
                yield connection
            return
        try:
            yield self._usable()
        except BaseException as error:
            # After an error of the caller's own the connection is as good as before.
            if isinstance(error, FAILURES) or not isinstance(error, Exception):
                self.close()
            raise

    def _usable(self) -> Connection:
        if self._connection is not None and self._clock() - self._used_at > IDLE_SECONDS:
            try:
                self._connection.exec_driver_sql("SELECT 1")
            except FAILURES:
                self.close()
        if self._connection is None:
            self.database.check_writable()
            self._connection = self._open()
        self._used_at = self._clock()
        return self._connection
