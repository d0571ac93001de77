"""Reading which compute services were heard from: a part of them at a time.

In a large fleet a thousand heartbeats are written per second.  Reading all of them in one piece
would keep some request waiting once a second, so the services are read in parts that take turns.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa

from scheduler.db import tables
from scheduler.db.fleet_windows import EPOCH, FRESH, TouchedRows, whole_second

#: Heartbeats carry a tolerance of ``service_down_time``; reading each host's this often is enough.
EVERY_SECONDS = 1.0
#: So many services make a part, unless there would be more than MOST_PARTS.
PART_SERVICES = 500
MOST_PARTS = 40

COMPUTE_BINARY = "nova-compute"
_TABLE = tables.services
LIVING = (_TABLE.c.binary == COMPUTE_BINARY, _TABLE.c.deleted == 0)
"""Of services: that they are of compute hosts, and not deleted."""
_CHUNK = 500
_STAMPS = ("updated_at",)


class _Part:
    """The services whose ids leave *rest* when divided by *parts*."""

    def __init__(self, dialect_name: str, parts: int, rest: int) -> None:
        only = None if parts == 1 else lambda row_id: row_id % parts == rest
        self.touched = TouchedRows(dialect_name, _TABLE, list(_TABLE.c), _STAMPS, only)
        questions = self.touched.questions()
        self._question = sa.select(*(each.label(name) for name, each in questions.items()))
        #: When it was last read; None: not yet, or the last read failed.
        self.read_at: datetime.datetime | None = None

    def news(
        self,
        connection: sa.Connection,
        now: datetime.datetime,
        overlap: datetime.timedelta,
        clock: float,
    ) -> set[int]:
        """Ids of the services that were heard from since the last read."""
        since = whole_second((self.read_at or now) - overlap)
        fresh = since if self.read_at is None else max(since, whole_second(now - FRESH))
        parameters = {
            "since": EPOCH + datetime.timedelta(seconds=since),
            "fresh": EPOCH + datetime.timedelta(seconds=fresh),
            **self.touched.parameters(fresh),
        }
        self.read_at = None
        answers = connection.execute(self._question, parameters).one()._mapping
        ids = self.touched.news(answers, since, fresh, clock)
        differing = self.touched.differing(answers, since)
        if differing:
            ids |= self.touched.look_closer(connection, differing, clock)
        return ids

    def is_due(self, now: datetime.datetime, every_seconds: float) -> bool:
        """Whether so much time has passed since it was read; also where the clock was set back."""
        if self.read_at is None:
            return True
        return not 0 <= (now - self.read_at).total_seconds() < every_seconds


class HeartbeatReader:
    """The heartbeats of one database, each read within *every_seconds*.

    *clock* never goes back.
    """

    def __init__(
        self,
        dialect_name: str,
        overlap: datetime.timedelta,
        clock: Callable[[], float],
        every_seconds: float = EVERY_SECONDS,
    ) -> None:
        self._dialect_name = dialect_name
        self._overlap = overlap
        self._clock = clock
        self._every_seconds = every_seconds
        self._of_all = TouchedRows(dialect_name, _TABLE, list(_TABLE.c), _STAMPS)
        self._parts: list[_Part] = []

    def begin(self, connection: sa.Connection, now: datetime.datetime) -> None:
        """Note what there is by now, before all services are read."""
        count = connection.execute(
            sa.select(sa.func.count()).select_from(_TABLE).where(*LIVING)
        ).scalar_one()
        number = max(1, min(MOST_PARTS, -(-count // PART_SERVICES)))
        if number != len(self._parts):
            self._parts = [_Part(self._dialect_name, number, rest) for rest in range(number)]
        for part in self._parts:
            part.read_at = None
            part.news(connection, now, self._overlap, self._clock())
            part.read_at = now

    def read(self, connection: sa.Connection, now: datetime.datetime) -> Sequence[Any]:
        """The rows of the services that were heard from since, of the parts whose turn it is."""
        found: list[Any] = []
        for part in self._due(now):
            ids = sorted(part.news(connection, now, self._overlap, self._clock()))
            for start in range(0, len(ids), _CHUNK):
                some = _TABLE.c.id.in_(ids[start : start + _CHUNK])
                found.extend(connection.execute(sa.select(*_TABLE.c).where(some, *LIVING)))
            part.read_at = now
        return found

    def _due(self, now: datetime.datetime) -> list[_Part]:
        """The parts that must be read; else, now and then, the one that was read longest ago."""
        late = [part for part in self._parts if part.is_due(now, self._every_seconds)]
        if late or len(self._parts) < 2:
            return late
        spacing = self._every_seconds / len(self._parts)
        if not all(part.is_due(now, spacing) for part in self._parts):
            return []
        return [min(self._parts, key=lambda part: part.read_at or datetime.datetime.min)]

    # --- for the glance ------------------------------------------------------------------

    def heard_since(self, now: datetime.datetime) -> int | None:
        """The second from which on heartbeats would be looked for; None while none are due."""
        if not self._due(now):
            return None
        read_at = [part.read_at for part in self._parts if part.read_at is not None]
        is_known = len(read_at) == len(self._parts)
        return whole_second(min(read_at) - self._overlap) if is_known else 0

    def heard_nothing(self, now: datetime.datetime) -> None:
        """There were no heartbeats until *now*."""
        for part in self._parts:
            part.read_at = now

    def newest(self) -> list[sa.ColumnElement[Any]]:
        """See ``TouchedRows``."""
        return self._of_all.newest()

    def is_quiet(self, since: int) -> bool:
        """See ``TouchedRows``."""
        return all(part.touched.is_quiet(since) for part in self._parts)
