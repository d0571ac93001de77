"""Reads of the tables of claims by one worker, and closing and purging in them."""

import datetime
import threading
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sqlalchemy import Connection

from scheduler.db import claims as claim_rows
from scheduler.db.database import Database
from scheduler.db.sessions import ReadSession
from scheduler.hosts.columns import NEVER
from scheduler.hosts.refresh import is_due
from scheduler.hosts.table import Key

#: Age of closed claims to purge: for requests that arrive twice, and for workers that read late.
KEPT = datetime.timedelta(seconds=300)
#: Seconds between two reads of all open claims.
ALL_READ_SECONDS = 5.0
#: Allowance for clocks that differ and slow writes, for the end of a claim to be read
#: before all open claims are read again.
LATE_SECONDS = 3.0
#: Seconds between two writes of what is over, and between two purges of old claims.
CLOSE_SECONDS = 0.5
PURGE_SECONDS = 60.0
#: Most ids between two claims that are waited for.
SKIPPED_AT_MOST: Final = 1000
NEVER_CLOSED: Final = datetime.datetime(9999, 1, 1)


class KnownIds:
    """Ids of the claims that were read: all up to ``newest`` but those that were ``skipped``.

    An id is drawn when a claim is written, and is visible when its transaction is committed: one
    that was skipped may come later, or never where the transaction was rolled back.  A read of
    all open claims finds whatever came, so those that were skipped before it are forgotten.
    """

    def __init__(self) -> None:
        self.newest = 0
        self.skipped: set[int] = set()

    def add(self, ids: Set[int]) -> None:
        """Claims with these *ids* were read."""
        last = max(ids, default=0)
        if last > self.newest:
            self.skipped.update(range(max(self.newest + 1, last - SKIPPED_AT_MOST), last))
            self.newest = last
        self.skipped -= ids


@dataclass(frozen=True, slots=True)
class ClaimRead:
    """The result of one read; *at* is when it began, in seconds since the epoch.

    *rows* are the claims that were not known.  A read of all has the *open_ids* of all that are
    open, and the *newest* id of any.  A read of the news has None there, but the *closed_ids* of
    those that were closed of late, and closed ones among its rows.  *hosts* are the rows of all
    hosts, in the first read; *held* the generations that were held when the read began.
    """

    number: int
    at: float
    rows: Sequence[Any] = ()
    open_ids: Set[int] | None = None
    closed_ids: Set[int] = frozenset()
    newest: int = 0
    hosts: Sequence[Any] = ()
    held: Mapping[Key, int] = field(default_factory=dict)


class ClaimReader:
    """Reads of, and closing in, the claims of *database*, with the times at which they are due.

    Times are in seconds since the epoch.  What was read is read again until it was :meth:`taken`.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        #: Number of reads that have begun.
        self.reads = 0
        self.ids = KnownIds()
        self._session = ReadSession(database)
        #: Held during a read: requests read the news while the state is read.
        self._reading = threading.Lock()
        self._needs_all = self._needs_hosts = True
        self._all_read_at = self._read_at = NEVER
        self._closed_at = self._purged_at = NEVER

    def want_all(self) -> None:
        """Make the next read one of all claims: some claim was skipped."""
        self._needs_all = True

    def read(
        self, now: float, known: Callable[[], Collection[int]], held: Mapping[Key, int]
    ) -> ClaimRead:
        """Read what has changed; now and then, and where generations are *held*, all claims.

        Claims whose ids are *known* are not read again.
        """
        if not (held or self._needs_all or is_due(self._all_read_at, ALL_READ_SECONDS, now)):
            return self.read_new(now, utc(min(now, self._read_at) - LATE_SECONDS))
        self.reads += 1
        begun, read_before = ClaimRead(self.reads, now, held=dict(held)), known()

        def ask(connection: Connection) -> ClaimRead:
            # The generations of all hosts, once, before the claims that made them.
            hosts = claim_rows.hosts(connection) if self._needs_hosts else ()
            newest = claim_rows.newest_id(connection)
            ids = claim_rows.open_ids(connection)
            rows = claim_rows.by_ids(connection, ids.difference(read_before))
            return replace(begun, rows=rows, open_ids=ids, newest=newest, hosts=hosts)

        return self._run(ask)

    def read_new(self, now: float, closed_since: datetime.datetime = NEVER_CLOSED) -> ClaimRead:
        """Read the claims that came, and the ids of those closed since."""
        self.reads += 1
        number, known = self.reads, self.ids

        def ask(connection: Connection) -> ClaimRead:
            ids, closed = claim_rows.changed_ids(
                connection, known.newest, tuple(known.skipped), closed_since
            )
            return ClaimRead(number, now, claim_rows.by_ids(connection, ids), closed_ids=closed)

        return self._run(ask)

    def _run(self, ask: Callable[[Connection], ClaimRead]) -> ClaimRead:
        with self._reading:
            return self._session.run(ask)

    def taken(self, read: ClaimRead) -> None:
        """Take what *read* has found for known, and so the reports of that time."""
        self._read_at = read.at
        if read.open_ids is not None:
            self._all_read_at, self._needs_all = read.at, False
            self.ids.add(read.open_ids | {read.newest})
            self.ids.skipped.clear()
            self._needs_hosts = False

    def close(self, ids: Collection[int], now: float) -> bool:
        """Close claims that are over, if it is time for that; whether it is."""
        if not ids or not is_due(self._closed_at, CLOSE_SECONDS, now):
            return False
        self.database.write_retrying(lambda conn: claim_rows.close(conn, ids, utc(now)))
        self._closed_at = now
        return True

    def purge(self, now: float) -> None:
        """Delete claims that were closed long ago, if it is time for that."""
        if is_due(self._purged_at, PURGE_SECONDS, now):
            self.database.write_retrying(lambda conn: claim_rows.purge(conn, utc(now) - KEPT))
            self._purged_at = now


def utc(seconds: float) -> datetime.datetime:
    """A time as columns hold it: naive UTC without a fraction of a second."""
    when = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return when.replace(tzinfo=None, microsecond=0)
