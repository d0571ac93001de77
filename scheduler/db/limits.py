"""Limits of transactions that the server enforces, whatever becomes of its client.

A client that is stopped or cut off inside a transaction keeps its locks until the server ends it.
"""

from dataclasses import dataclass
from typing import Any, Final

_MARIADB_IDLE: Final = "idle_transaction_timeout"


@dataclass(frozen=True, slots=True)
class TransactionLimits:
    """Seconds that a transaction may do nothing, and that a statement may wait for a lock."""

    idle_seconds: int = 60
    lock_wait_seconds: int = 60

    def put_in_force(self, dialect_name: str, connection: Any) -> None:
        """Set the limits on a new DB-API *connection* to PostgreSQL, MariaDB or MySQL."""
        with connection.cursor() as cursor:
            if dialect_name == "postgresql":
                names, per_second = ("idle_in_transaction_session_timeout", "lock_timeout"), 1000
            else:
                cursor.execute(f"SHOW SESSION VARIABLES LIKE '{_MARIADB_IDLE}'")
                # Elsewhere idle connections have to be closed altogether.
                idle = _MARIADB_IDLE if cursor.fetchone() else "wait_timeout"
                names, per_second = (idle, "innodb_lock_wait_timeout"), 1
            limits = self.idle_seconds, self.lock_wait_seconds
            for name, seconds in zip(names, limits, strict=True):
                cursor.execute(f"SET SESSION {name} = {seconds * per_second}")
        connection.commit()


#: For connections that keep no lock which others wait for.
DEFAULT_LIMITS: Final = TransactionLimits()
