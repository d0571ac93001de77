"""A connection that one user of a database keeps for itself, until either is closed."""

from __future__ import annotations

from sqlalchemy import Connection

from scheduler.db.database import Database


class KeptConnection:
    """One of *database*, opened at the first use; by one caller at a time."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._kept: Connection | None = None
        database.remember(self)

    def close(self) -> None:
        """Give the connection up; the next use opens another."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.invalidate()
            kept.close()
