"""Reads of the fleet that no request waits for: heartbeats, and what was committed late.

Heartbeats touch every service all the time; they tolerate ``service_down_time``.  Once a minute a
look back lists what was stamped within the last minutes.  The next poll reads those of these rows
that no poll has shown.
"""

import datetime
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa

from scheduler.db import rows, tables
from scheduler.db.database import Database
from scheduler.db.fleet_poll import ChangedRows, Compiled, Dialect, entries_of, whole_second
from scheduler.db.fleet_rows import LIVING_SERVICES
from scheduler.db.sessions import ReadSession

#: Heartbeats are read again after so long.
HEARTBEAT_SECONDS: Final = 1.0
#: Heartbeats that were read longer ago are read before a request goes on.
LATE_SECONDS: Final = 5.0
#: A row that is committed so long after its timestamp is found by a look back: transactions stay
#: open, and clocks differ, but not by more.
LOOK_BACK = datetime.timedelta(seconds=60)

_SERVICES = tables.services


class BesideReader:
    """Reads of one *database*; what they find of its *changed* rows is left to the next poll.

    So is which compute nodes there are.
    """

    def __init__(self, database: Database, changed: Sequence[ChangedRows]) -> None:
        self._session = ReadSession(database)
        self._reading = threading.Lock()
        self._changed = changed
        dialect = Dialect(database.dialect_name)
        version = dialect.joined(_SERVICES.c.id, dialect.version(_SERVICES, list(_SERVICES.c)))
        listed = sa.select(dialect.listed(version)).where(*LIVING_SERVICES)
        self._versions_query = Compiled(database, listed)
        nodes = tables.compute_nodes.c
        there = sa.select(dialect.listed(dialect.joined(nodes.id))).where(nodes.deleted == 0)
        queries = [*(each.stamps_query for each in changed), there.scalar_subquery()]
        self._looks = Compiled(database, sa.select(*queries))
        self._looked_at: datetime.datetime | None = None
        self._versions: set[str] = set()
        self._heard_at: datetime.datetime | None = None
        #: Number of times that services came or went: other threads compare it.
        self.member_changes = 0
        #: Ids of the compute nodes there are, from the last look back until a poll takes them.
        self.node_ids: deque[set[int]] = deque(maxlen=1)

    def close(self) -> None:
        """Give the connection up; the next read opens another."""
        self._session.close()

    def begin(self, connection: sa.Connection, now: datetime.datetime) -> None:
        """Note what is known with a full read, before it reads the services."""
        with self._reading:
            if not self._versions:
                self._versions = self._current(connection)
            self._heard_at = self._looked_at = now
            for each in self._changed:
                each.looked.clear()

    def heartbeats(self, now: datetime.datetime, every_seconds: float) -> Sequence[Any]:
        """The services heard from since the last call, if that was *every_seconds* ago.

        A thread waits for another's read only if it needs one itself.
        Raises oslo.db's errors when the database does not answer.
        """
        if self._has_heard(now, every_seconds):
            return ()
        with self._reading:
            if self._has_heard(now, every_seconds):
                return ()
            found = self._session.run(self._heard_from)
            self._heard_at = now
            return found

    def _has_heard(self, now: datetime.datetime, every_seconds: float) -> bool:
        heard_at = self._heard_at
        # Not where the clock was set back.
        return heard_at is not None and 0 <= (now - heard_at).total_seconds() < every_seconds

    def look_back(self, now: datetime.datetime) -> None:
        """Find what was committed late, if that is due again; raises oslo.db's errors."""
        with self._reading:
            if self._looked_at is None or self._looked_at <= now < self._looked_at + LOOK_BACK:
                return
            since = whole_second(min(self._looked_at, now) - LOOK_BACK)
            looks: Sequence[Any] = self._session.run(
                lambda connection: self._looks.execute(connection, since).one()
            )
            *texts, there = looks
            for each, text in zip(self._changed, texts, strict=True):
                each.looked.append(entries_of(text))
            self.node_ids.append(set(map(int, entries_of(there))))
            self._looked_at = now

    def _heard_from(self, connection: sa.Connection) -> Sequence[Any]:
        versions, before = self._current(connection), self._versions
        ids, gone = (
            {int(each.partition(":")[0]) for each in some}
            for some in (versions - before, before - versions)
        )
        query = sa.select(*_SERVICES.c).where(*LIVING_SERVICES)
        found = rows.select_in(connection, query, _SERVICES.c.id, sorted(ids))
        self._versions = versions
        self.member_changes += ids != gone
        return found

    def _current(self, connection: sa.Connection) -> set[str]:
        return entries_of(self._versions_query.execute(connection).scalar())
