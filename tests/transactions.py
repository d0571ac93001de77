"""Transactions that stay open while others begin and end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from scheduler.db.database import Database

#: InnoDB also locks gaps between rows, which the test does not foresee: it goes on without.
IMPATIENT = "SET SESSION innodb_lock_wait_timeout = 1"

Step = Callable[[sa.Connection], Any]


class Transaction:
    """Statements that become visible together at *commits_at*.

    SQLite lets one writer in at a time, so there the statements, with the stamps of before, are
    carried out at the end.
    """

    def __init__(self, database: Database, commits_at: float) -> None:
        self.commits_at = commits_at
        self.locked: set[tuple[str, Any]] = set()
        self._database = database
        self._steps: list[Step] = []
        self._stack = contextlib.ExitStack()
        self._connection: sa.Connection | None = None
        if database.dialect_name != "sqlite":
            self._connection = self._stack.enter_context(database.write())
        if database.dialect_name == "mysql":
            self.do(lambda connection: connection.exec_driver_sql(IMPATIENT))

    def do(self, step: Step) -> None:
        if self._connection is None:
            self._steps.append(step)
        else:
            try:
                step(self._connection)
            except BaseException as error:
                self._stack.__exit__(type(error), error, error.__traceback__)
                raise

    def commit(self) -> None:
        if self._connection is None:
            with self._database.write() as connection:
                for step in self._steps:
                    step(connection)
        self._stack.close()
