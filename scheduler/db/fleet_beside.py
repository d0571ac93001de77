"""Heartbeats, which no request waits for unless they are late.

They touch every service all the time, and tolerate ``service_down_time``.
"""

import datetime
import threading
from collections.abc import Callable, Mapping, Set
from typing import Any, Final

import sqlalchemy as sa

from scheduler.db import tables
from scheduler.db.database import Database
from scheduler.db.fleet_poll import Compiled, Dialect, entries_of
from scheduler.db.fleet_rows import LIVING_SERVICES
from scheduler.db.sessions import ReadSession

#: Heartbeats are read again after so long.
HEARTBEAT_SECONDS: Final = 1.0
#: Heartbeats that were read longer ago are read before a request goes on.
LATE_SECONDS: Final = 5.0
Heartbeats = Mapping[int, Mapping[str, Any]]
"""By the service's id the columns that a heartbeat changes, or a restart."""

_TIMES: Final = ("last_seen_up", "updated_at")
_NUMBERS: Final = ("report_count", "version")
#: In no time and no number.
_SEPARATOR: Final = "|"


class HeartbeatReader:
    """Reads of one *database*.  ``service_ids`` are all services as of the last one."""

    def __init__(self, database: Database) -> None:
        self._session = ReadSession(database)
        self._reading = threading.Lock()
        dialect = Dialect(database.dialect_name)
        services = tables.services.c
        values = dialect.texts(*(services[name] for name in (*_NUMBERS, *_TIMES)))
        heartbeat = dialect.joined(services.id, *values, separator=_SEPARATOR)
        listed = sa.select(dialect.listed(heartbeat)).where(*LIVING_SERVICES)
        self._query = Compiled(database, listed)
        self._heard: set[str] = set()
        self._heard_at: datetime.datetime | None = None
        self.service_ids: Set[int] = frozenset()

    def close(self) -> None:
        """Give the connection up; the next read opens another."""
        self._session.close()

    def begin(self, connection: sa.Connection, now: datetime.datetime) -> None:
        """Note what is known with a full read, before it reads the services."""
        with self._reading:
            self._hear(connection)
            self._heard_at = now

    def read(self, now: datetime.datetime, every_seconds: float) -> Heartbeats:
        """Heartbeats since the last call, if that was *every_seconds* ago.

        A thread waits for another's read only if it needs one itself.
        Raises oslo.db's errors when the database does not answer.
        """
        if is_recent(self._heard_at, now, every_seconds):
            return {}
        with self._reading:
            if is_recent(self._heard_at, now, every_seconds):
                return {}
            new = self._session.run(self._hear)
            self._heard_at = now
        return dict(map(_parsed, new))

    def have(self, work: Callable[[sa.Connection], None]) -> None:
        """Have more *work* done on the connection of these reads."""
        with self._reading:
            self._session.run(work)

    def _hear(self, connection: sa.Connection) -> set[str]:
        heard, before = entries_of(self._query.execute(connection).scalar()), self._heard
        self._heard = heard
        self.service_ids = {int(each.partition(_SEPARATOR)[0]) for each in heard}
        return heard - before


def is_recent(done_at: datetime.datetime | None, now: datetime.datetime, seconds: float) -> bool:
    """True when that was done less than so many *seconds* ago, and the clock not set back."""
    return done_at is not None and 0 <= (now - done_at).total_seconds() < seconds


def _parsed(heartbeat: str) -> tuple[int, dict[str, Any]]:
    service_id, *numbers, last_seen_up, updated_at = heartbeat.split(_SEPARATOR)
    times = zip(_TIMES, map(_time, (last_seen_up, updated_at)), strict=True)
    return int(service_id), {
        **dict(zip(_NUMBERS, map(_number, numbers), strict=True)),
        **dict(times),
    }


def _number(text: str) -> int | None:
    return int(text) if text.lstrip("-").isdecimal() else None


def _time(text: str) -> datetime.datetime | None:
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:  # NULL, or no time that Python has
        return None
