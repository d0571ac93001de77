"""Heartbeats, which touch every service all the time.

They tolerate ``service_down_time``: no request waits for them unless they are late.
"""

import datetime
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

import sqlalchemy as sa

from scheduler.db import fleet_rows, tables
from scheduler.db.database import Database
from scheduler.db.fleet_rows import Compiled, Dialect
from scheduler.db.sessions import ReadSession

#: Heartbeats are read again after so long.
HEARTBEAT_SECONDS: Final = 1.0
#: Heartbeats that were read longer ago are read before a request goes on.
LATE_SECONDS: Final = 5.0
Heartbeats = Mapping[int, Mapping[str, Any]]
"""By the service's id the columns that a heartbeat changes, or a restart."""

_HEARD: Final[Mapping[str, Callable[[str], Any]]] = {
    **dict.fromkeys(("report_count", "version"), int),
    **dict.fromkeys(("last_seen_up", "updated_at"), datetime.datetime.fromisoformat),
}
#: In no time and no number.
_SEPARATOR: Final = "|"


class HeartbeatReader:
    """Reads of one *database*.  ``changes`` counts those that found services come or gone."""

    def __init__(self, database: Database) -> None:
        self._session = ReadSession(database)
        self._reading = threading.Lock()
        dialect = Dialect(database.dialect_name)
        services = tables.services.c
        values = dialect.texts(*(services[name] for name in _HEARD))
        heartbeat = dialect.joined(services.id, *values, separator=_SEPARATOR)
        listed = sa.select(dialect.listed(heartbeat)).where(*fleet_rows.LIVING_SERVICES)
        self._query = Compiled(database, listed)
        self._heard: set[str] = set()
        self._heard_at = datetime.datetime.min
        self.changes = 0

    def begin(self, connection: sa.Connection, now: datetime.datetime) -> None:
        """Note what is known with a full read, before it reads the services."""
        with self._reading:
            self._hear(connection)
            self._heard_at = now

    def read(self, now: datetime.datetime, every_seconds: float) -> Heartbeats:
        """Heartbeats since the last call, if that was *every_seconds* ago.

        A thread waits for another's read only if it needs one itself.
        """
        if self._is_recent(now, every_seconds):
            return {}
        with self._reading:
            if self._is_recent(now, every_seconds):
                return {}
            new = self._session.run(self._hear)
            self._heard_at = now
        return dict(map(_parsed, new))

    def _is_recent(self, now: datetime.datetime, seconds: float) -> bool:
        """True when the last read began within *seconds*, and the clock was not set back."""
        return 0 <= (now - self._heard_at).total_seconds() < seconds

    def have(self, work: Callable[[sa.Connection], None]) -> None:
        """Have more *work* done on the connection of these reads."""
        with self._reading:
            self._session.run(work)

    def _hear(self, connection: sa.Connection) -> set[str]:
        heard, before = fleet_rows.entries_of(self._query.execute(connection).scalar()), self._heard
        self._heard, new = heard, heard - before
        ids = [{each.partition(_SEPARATOR)[0] for each in some} for some in (new, before - heard)]
        self.changes += ids[0] != ids[1]
        return new


def _parsed(heartbeat: str) -> tuple[int, dict[str, Any]]:
    service_id, *texts = heartbeat.split(_SEPARATOR)
    return int(service_id), dict(zip(_HEARD, map(_value, _HEARD.values(), texts), strict=True))


def _value(parse: Callable[[str], Any], text: str) -> Any:
    try:
        return parse(text)
    except ValueError:  # NULL, or no time that Python has
        return None
