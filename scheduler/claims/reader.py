"""Reads of the tables of claims by one worker, and closing and purging in them."""

import collections
import datetime
import threading
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Connection

from scheduler.db import claims as claim_rows
from scheduler.db.claims import Pair
from scheduler.db.database import Database
from scheduler.db.sessions import ReadSession
from scheduler.hosts.columns import NEVER
from scheduler.hosts.refresh import is_due

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


@dataclass(frozen=True, slots=True)
class ClaimRead:
    """The result of one read; *at* is when it began, in seconds since the epoch.

    *rows* are claims that were not known, in the order of their ids; *own* are those that this
    worker has written before, *closed_ids* of claims that are closed.  A read of all has rows of
    open claims only, *own* among them, the *newest* claim of any, and the rows of *hosts* whose
    generation was not known, read before the claims.  After a read of another history (*is_other*)
    nothing holds that was read before.
    """

    number: int
    at: float
    rows: Sequence[Any] = ()
    own: Set[Pair] = frozenset()
    closed_ids: Set[int] = frozenset()
    newest: Pair | None = None
    hosts: Mapping[claim_rows.Key, Any] = field(default_factory=dict)
    is_other: bool = False


class ClaimReader:
    """Reads of, and closing in, the claims of *database*, with the times at which they are due.

    Times are in seconds since the epoch.  What was read is read again until it was :meth:`taken`.
    Known are all claims up to the *newest* but those *skipped*.  These may come late, or never; a
    read of all open claims finds whatever came.  What this worker has *written* since is known by a
    read that finds it, together with what was known before.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        #: Number of reads that have begun.
        self.reads = 0
        #: As long as it is in the table, its history is the one known.
        self.newest: Pair = (0, 0)
        self.skipped: set[int] = set()
        #: Their ids may be low, or come twice: the database may have gone back since the write.
        self.written: set[Pair] = set()
        self.read_at = NEVER
        self._session = ReadSession(database)
        # Requests read the news while the state is read.
        self._reading = threading.Lock()
        self._needs_all = True
        self._all_read_at = self._closed_at = self._purged_at = NEVER
        #: Ids of the newest claims at the last times for a purge, of which the first is long ago.
        self._earlier = collections.deque[int](
            maxlen=round(KEPT.total_seconds() / PURGE_SECONDS) + 1
        )

    def want_all(self) -> None:
        """Make the next read one of all claims."""
        self._needs_all = True

    def start_over(self) -> None:
        """Know nothing of what was read before."""
        self.newest = (0, 0)
        self.skipped.clear()
        self.written.clear()
        self._earlier.clear()
        self.want_all()

    def know(self, several: Collection[Pair]) -> None:
        """These claims were read."""
        last, before = max(several, default=(0, 0)), self.newest[0]
        if last[0] > before:
            self.skipped.update(range(max(before + 1, last[0] - SKIPPED_AT_MOST), last[0]))
            self.newest = last
        self.skipped.difference_update(number for number, _generation in several)

    def read(
        self,
        now: float,
        known: Callable[[], Collection[int]],
        uncounted: Callable[[], Collection[claim_rows.Key]],
    ) -> ClaimRead:
        """Read what has changed; now and then all claims, after the generations of *uncounted*.

        Claims whose ids are *known*, which were open, are not read again.
        """
        if not (self._needs_all or is_due(self._all_read_at, ALL_READ_SECONDS, now)):
            return self.read_new(now, utc(min(now, self.read_at) - LATE_SECONDS))
        self._needs_all = False
        self.reads += 1
        number, before, last = self.reads, set(known()), self.newest
        written = set(self.written)
        hosts = claim_rows.begin(self.database, uncounted())

        def ask(connection: Connection) -> ClaimRead:
            newest = claim_rows.newest(connection)
            generation, own, ids = claim_rows.open_ids(connection, last[0], written)
            gone, rows = before - ids, claim_rows.by_ids(connection, ids - before)
            is_lost = own != written or len(claim_rows.by_ids(connection, gone)) < len(gone)
            is_other = _is_other(last, generation, is_lost=is_lost)
            return ClaimRead(number, now, rows, own, gone, newest, hosts, is_other)

        return self._run(ask)

    def read_new(self, now: float, closed_since: datetime.datetime = NEVER_CLOSED) -> ClaimRead:
        """Read the claims that came, and the ids of those closed since."""
        self.reads += 1
        number, last, written = self.reads, self.newest, set(self.written)
        missed = set(self.skipped)

        def ask(connection: Connection) -> ClaimRead:
            generation, own, ids, closed_ids = claim_rows.changed_ids(
                connection, last[0], written, missed, closed_since
            )
            rows = claim_rows.by_ids(connection, ids - {each for each, _generation in own})
            is_other = _is_other(last, generation, is_lost=own != written)
            return ClaimRead(number, now, rows, own, closed_ids, is_other=is_other)

        return self._run(ask)

    def _run(self, ask: Callable[[Connection], ClaimRead]) -> ClaimRead:
        with self._reading:
            return self._session.run(ask)

    def taken(self, read: ClaimRead) -> None:
        """Take what *read* has found for known, and so the reports of that time."""
        self.read_at = read.at
        self.know([(row.id, row.generation) for row in read.rows])
        self.know(read.own)
        self.written -= read.own
        if read.newest is not None:
            self._all_read_at = read.at
            self.newest = max(self.newest, read.newest)
            self.skipped.clear()

    def close(self, over: Mapping[int, int], now: float) -> None:
        """Close claims that are *over*, if it is time for that."""
        if over and is_due(self._closed_at, CLOSE_SECONDS, now):
            self.database.write_retrying(lambda conn: claim_rows.close(conn, over, utc(now)))
            self._closed_at = now

    def purge(self, now: float) -> None:
        """Delete claims that were closed long ago, if it is time for that.

        The one that was the newest so long ago is kept: whoever has read since then, and found
        nothing, knows the history by it.
        """
        if is_due(self._purged_at, PURGE_SECONDS, now):
            self._purged_at = now
            self._earlier.append(self.newest[0])
            if len(self._earlier) == self._earlier.maxlen:
                before, oldest = utc(now) - KEPT, self._earlier[0]
                self.database.write_retrying(lambda conn: claim_rows.purge(conn, before, oldest))


def _is_other(last: Pair, generation: int | None, *, is_lost: bool) -> bool:
    """True if claims are lost, or *generation* is not that of the *last* claim known.

    It is None if there is no such row.
    """
    return is_lost or generation != (last[1] if last[0] else None)


def utc(seconds: float) -> datetime.datetime:
    """A time as columns hold it: naive UTC without a fraction of a second."""
    when = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return when.replace(tzinfo=None, microsecond=0)
