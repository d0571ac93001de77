"""What happened in the database, told by its own triggers, in the order in which it happened.

The number of a line is drawn when a row is written, and what a transaction has seen of others was
committed before.  So whatever made room for a claim stands before the claim.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pymysql
import sqlalchemy as sa

TABLE: Final = """CREATE TABLE race_journal (
    id BIGINT AUTO_INCREMENT PRIMARY KEY, at DOUBLE NOT NULL, kind VARCHAR(8) NOT NULL,
    uuid CHAR(36) NOT NULL, host VARCHAR(255), memory_mb INT, state VARCHAR(255), request TEXT)"""
_LINE: Final = (
    "INSERT INTO race_journal (at, kind, uuid, host, memory_mb, state, request) "
    "VALUES (UNIX_TIMESTAMP(NOW(6)), {values})"
)
_ENDED: Final = _LINE.format(values="'end', OLD.consumer_uuid, OLD.host, OLD.memory_mb, NULL, NULL")
_CLAIMED: Final = _LINE.format(
    values="'claim', NEW.consumer_uuid, NEW.host, NEW.memory_mb, NULL, NEW.request_id"
)
TRIGGERS: Final = (
    # What is closed from the beginning claims nothing: the memory of a refusal.  Nor does a mark.
    "CREATE TRIGGER race_claimed AFTER INSERT ON claims FOR EACH ROW IF NEW.closed_at IS NULL "
    f"AND NEW.host <> '' AND @goes_back IS NULL THEN {_CLAIMED}; END IF",
    "CREATE TRIGGER race_closed AFTER UPDATE ON claims FOR EACH ROW "
    f"IF OLD.closed_at IS NULL AND NEW.closed_at IS NOT NULL THEN {_ENDED}; END IF",
    "CREATE TRIGGER race_dropped AFTER DELETE ON claims FOR EACH ROW "
    f"IF OLD.closed_at IS NULL AND @goes_back IS NULL THEN {_ENDED}; END IF",
    "CREATE TRIGGER race_instance AFTER UPDATE ON instances FOR EACH ROW "
    + _LINE.format(
        values="'server', NEW.uuid, NEW.host, NEW.memory_mb, "
        "IF(NEW.deleted <> 0, 'deleted', NEW.vm_state), NULL"
    ),
)
_READ: Final = (
    "SELECT id, at, kind, uuid, host, memory_mb, state, request FROM race_journal ORDER BY id"
)


@dataclass(frozen=True, slots=True)
class Line:
    """One change: a ``claim`` made or at its ``end``, or a ``server`` that is now on *host* (None:
    on none) in *state*.  *at* in seconds since the epoch.
    """

    id: int
    at: float
    kind: str
    uuid: str
    host: str | None
    memory_mb: int
    state: str | None
    request: str | None


def connect(url: str, *, autocommit: bool = True) -> pymysql.Connection[Any]:
    """A connection of our own to the database at *url*."""
    parsed = sa.make_url(url)
    return pymysql.connect(
        host=parsed.host,
        port=parsed.port or 0,
        user=parsed.username,
        password=parsed.password or "",
        database=parsed.database,
        autocommit=autocommit,
    )


def begin(url: str) -> None:
    with connect(url) as connection, connection.cursor() as cursor:
        for statement in (TABLE, *TRIGGERS):
            cursor.execute(statement)


def read(url: str) -> list[Line]:
    return [Line(*row) for row in _ask(url, _READ)]


def latest(url: str) -> int:
    """Number of the last line; 0 if there is none."""
    ((number,),) = _ask(url, "SELECT COALESCE(MAX(id), 0) FROM race_journal")
    return int(number)


def open_claims(url: str) -> int:
    ((count,),) = _ask(url, "SELECT COUNT(*) FROM claims WHERE closed_at IS NULL")
    return int(count)


def end_state(url: str) -> dict[str, Sequence[Any]]:
    """What the tables say at the end: open claims, servers on hosts, what hosts report."""
    return {
        "claims": _ask(url, "SELECT consumer_uuid, host FROM claims WHERE closed_at IS NULL"),
        "servers": _ask(
            url, "SELECT uuid, host FROM instances WHERE deleted = 0 AND host IS NOT NULL"
        ),
        "reports": _ask(url, "SELECT host, memory_mb, memory_mb_used FROM compute_nodes"),
    }


def go_back(url: str, wait: Callable[[], object]) -> None:
    """Have the claims as they are now once more after *wait*, and their ids drawn again.

    The journal does not tell of it: whatever was claimed by then counts until it is over.
    """
    with connect(url, autocommit=False) as connection, connection.cursor() as cursor:
        earlier = {}
        for table in ("claim_hosts", "claims"):
            cursor.execute(f"SELECT * FROM {table}")  # of one snapshot
            marks = ", ".join(["%s"] * len(cursor.description))
            earlier[table] = f"INSERT INTO {table} VALUES ({marks})", cursor.fetchall()
        connection.commit()
        wait()
        cursor.execute("SET @goes_back = 1")
        for table, (insert, rows) in earlier.items():
            cursor.execute(f"DELETE FROM {table}")
            cursor.executemany(insert, rows)
        connection.commit()
        for table in earlier:
            cursor.execute(f"ALTER TABLE {table} AUTO_INCREMENT = 1")


def _ask(url: str, statement: str) -> Sequence[Any]:
    with connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()
