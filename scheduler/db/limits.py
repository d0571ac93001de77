"""Limits of transactions that the server enforces, whatever becomes of its client.

A client that is stopped or cut off inside a transaction keeps its locks until the server ends it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

#: Queries for the names that a server knows, of those wanted.
_KNOWN: Final = {
    "mysql": "SHOW SESSION VARIABLES WHERE Variable_name IN ({})",
    "postgresql": "SELECT name FROM pg_settings WHERE name IN ({})",
}
_MARIADB_IDLE: Final = "idle_transaction_timeout"
_MYSQL_IDLE: Final = "wait_timeout"


@dataclass(frozen=True, slots=True)
class TransactionLimits:
    """Seconds that a transaction may do nothing, and that a statement may wait for a lock."""

    idle_seconds: int = 60
    lock_wait_seconds: int = 60

    def settings(self, dialect_name: str) -> Mapping[str, int]:
        """The limits by the server's own names; in milliseconds for PostgreSQL."""
        if dialect_name == "postgresql":
            return {
                "idle_in_transaction_session_timeout": self.idle_seconds * 1000,
                "lock_timeout": self.lock_wait_seconds * 1000,
            }
        return {
            _MARIADB_IDLE: self.idle_seconds,
            _MYSQL_IDLE: self.idle_seconds,
            "innodb_lock_wait_timeout": self.lock_wait_seconds,
        }

    def put_in_force(self, dialect_name: str, connection: Any) -> None:
        """Set the limits on a new DB-API *connection*, as far as its server knows them."""
        wanted = self.settings(dialect_name)
        with connection.cursor() as cursor:
            cursor.execute(_KNOWN[dialect_name].format(", ".join(f"'{each}'" for each in wanted)))
            known = {row[0] for row in cursor.fetchall()}
            if _MARIADB_IDLE in known:  # else idle connections have to be closed altogether
                known.discard(_MYSQL_IDLE)
            for name in known:
                cursor.execute(f"SET SESSION {name} = {wanted[name]}")
        connection.commit()


#: For connections that keep no lock which others wait for.
DEFAULT_LIMITS: Final = TransactionLimits()
