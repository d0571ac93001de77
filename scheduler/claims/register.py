"""The tables of claims as one worker reads and tidies them."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection

from scheduler.claims.seen import SeenIds
from scheduler.db import claims as claim_rows
from scheduler.db.claims_news import News
from scheduler.db.database import Database
from scheduler.db.read_session import ReadSession
from scheduler.hosts.steady_clock import is_due
from scheduler.hosts.table import Key

#: How long closed claims are kept: for requests that arrive twice, and for workers that look late.
KEPT = datetime.timedelta(seconds=300)
#: Seconds between two reads of all hosts' generations, and of all open claims.
HOSTS_READ_SECONDS = 60.0
ALL_READ_SECONDS = 5.0
#: How far clocks may differ, and how long a write may take, for the end of a claim to be seen
#: before all open claims are read again.
LATE_SECONDS = 3.0
#: Seconds between two writes of what is over, and between two purges of old claims.
CLOSE_SECONDS = 0.5
PURGE_SECONDS = 60.0
NEVER = float("-inf")

Held = Mapping[Key, int]


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at the claims found; *at* is when it began, in seconds since the epoch.

    *rows* are the claims that were not known.  A look at all tells the *open_ids* of all that are
    open, and the *newest* id of any.  A look at the news has None there, but the *closed_ids* of
    those that were closed of late, and closed ones among its rows.  *hosts* are the rows of all
    hosts, if they were asked for; *held* the generations that were held when the look began.
    """

    number: int
    at: float
    rows: Sequence[Any] = ()
    open_ids: Set[int] | None = None
    closed_ids: Set[int] = frozenset()
    newest: int = 0
    hosts: Sequence[Any] = ()
    held: Held = field(default_factory=dict)


class Register:
    """Reads of, and closing in, the claims of *database*, with the times at which they are due.

    Times are in seconds since the epoch.  What a look has shown is only then not shown again when
    it was :meth:`taken`.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        #: How many looks have begun.
        self.looks = 0
        self.seen = SeenIds()
        self._session = ReadSession(database)
        self._news_of = News()
        #: Held during a look: requests glance while the state is read.
        self._looking = threading.Lock()
        self._needs_all = True
        self._all_read_at = self._hosts_read_at = self._looked_at = NEVER
        self._closed_at = self._purged_at = NEVER

    def want_all(self) -> None:
        """Have the next look be one at all: some claim was passed over."""
        self._needs_all = True

    def look(self, now: float, known: Callable[[], Collection[int]], held: Held) -> Look:
        """Look at what has changed; now and then, and if generations are *held*, at all claims.

        Claims whose ids are *known* are not read again.
        """
        number = self._next()
        if not (held or self._needs_all or is_due(self._all_read_at, ALL_READ_SECONDS, now)):
            since = utc(min(now, self._looked_at) - LATE_SECONDS)
            return self._news(number, now, since)
        with_hosts = is_due(self._hosts_read_at, HOSTS_READ_SECONDS, now)
        return self._all(Look(number, now, held=dict(held)), known(), with_hosts=with_hosts)

    def glance(self, now: float) -> Look:
        """Look at the claims that came."""
        return self._news(self._next(), now, None)

    def _next(self) -> int:
        self.looks += 1
        return self.looks

    def taken(self, look: Look) -> None:
        """What *look* has found is known from now on, and so are the reports of that time."""
        self._looked_at = look.at
        if look.open_ids is not None:
            self._all_read_at, self._needs_all = look.at, False
            self.seen.note(look.open_ids | {look.newest}, look.at)
        if look.hosts:
            self._hosts_read_at = look.at

    def _all(self, look: Look, known: Collection[int], *, with_hosts: bool) -> Look:
        """Hosts are read before claims, so that no generation is without the claim that made it."""

        def ask(connection: Connection) -> Look:
            hosts = claim_rows.hosts(connection) if with_hosts else ()
            newest = claim_rows.newest_id(connection)
            ids = claim_rows.open_ids(connection)
            rows = claim_rows.by_ids(connection, ids.difference(known))
            return replace(look, rows=rows, open_ids=ids, newest=newest, hosts=hosts)

        return self._run(ask)

    def _news(self, number: int, now: float, closed_since: datetime.datetime | None) -> Look:
        def ask(connection: Connection) -> Look:
            seen = self.seen
            ids, closed = self._news_of.ids(connection, seen.newest, seen.missed, closed_since)
            return Look(number, now, claim_rows.by_ids(connection, ids), closed_ids=closed)

        return self._run(ask)

    def _run(self, ask: Callable[[Connection], Look]) -> Look:
        with self._looking:
            return self._session.run(ask)

    def close(self, ids: Collection[int], now: float) -> bool:
        """Close claims that are over, if it is time for that; whether it is."""
        if not ids or not is_due(self._closed_at, CLOSE_SECONDS, now):
            return False
        self.database.write_retrying(lambda conn: claim_rows.close(conn, ids, utc(now)))
        self._closed_at = now
        return True

    def purge(self, now: float) -> None:
        """Forget claims that were closed long ago, if it is time for that."""
        if is_due(self._purged_at, PURGE_SECONDS, now):
            self.database.write_retrying(lambda conn: claim_rows.purge(conn, utc(now) - KEPT))
            self._purged_at = now


def utc(seconds: float) -> datetime.datetime:
    """A time as columns hold it: naive UTC without a fraction of a second."""
    when = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return when.replace(tzinfo=None, microsecond=0)
