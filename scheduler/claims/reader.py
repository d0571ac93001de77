"""Reads of the tables of claims by one worker, and closing and purging in them."""

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
#: The newest claim where there is none.
NONE: Final[Pair] = (0, 0)


@dataclass(frozen=True, slots=True)
class ClaimRead:
    """The result of one read; *at* is when it began, in seconds since the epoch.

    *rows* are claims that were not known, in the order of their ids; *there* are those that had to
    be in the table.  If one was not, the read is of another history (*is_other*), and nothing holds
    that was read before.  *closed_ids* are of claims that are closed.  A read of all has rows of
    open claims only, the *newest* claim of any, and the rows of *hosts* whose generation was not
    known, read before the claims.
    """

    number: int
    at: float
    rows: Sequence[Any] = ()
    there: Set[Pair] = frozenset()
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
        self.newest = NONE
        self.skipped: set[int] = set()
        #: Their ids may be low, or come twice: the database may have gone back since the write.
        self.written: set[Pair] = set()
        self.read_at = NEVER
        self._session = ReadSession(database)
        # Requests read the news while the state is read.
        self._reading = threading.Lock()
        self._needs_all = True
        self._all_read_at = self._closed_at = self._purged_at = NEVER

    def want_all(self) -> None:
        """Make the next read one of all claims."""
        self._needs_all = True

    def start_over(self) -> None:
        self.newest = NONE
        self.skipped.clear()
        self.written.clear()
        self.want_all()

    def know(self, several: Collection[Pair]) -> None:
        last, before = max(several, default=NONE), self.newest[0]
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
        number, before, there = self.reads, set(known()), self._there()
        hosts = claim_rows.begin(self.database, uncounted())

        def ask(connection: Connection) -> ClaimRead:
            newest = claim_rows.newest(connection)
            is_there, ids = claim_rows.open_ids(connection, there)
            gone = before - ids
            is_there = is_there and len(claim_rows.by_ids(connection, gone)) == len(gone)
            rows, is_same = _rows(connection, ids - before, there)
            is_other = not (is_there and is_same)
            return ClaimRead(number, now, rows, there, gone, newest, hosts, is_other)

        return self._run(ask)

    def read_new(self, now: float, closed_since: datetime.datetime | None = None) -> ClaimRead:
        """Read the claims that came, and the ids of those closed since, unless None."""
        self.reads += 1
        number, last, there, missed = self.reads, self.newest[0], self._there(), {*self.skipped}

        def ask(connection: Connection) -> ClaimRead:
            is_there, ids, closed_ids = claim_rows.changed_ids(
                connection, there, last, missed, closed_since
            )
            new = ids - dict(there).keys()
            rows, is_same = _rows(connection, new, there) if new else ([], True)
            is_other = not (is_there and is_same)
            return ClaimRead(number, now, rows, there, closed_ids, is_other=is_other)

        return self._run(ask)

    def _there(self) -> set[Pair]:
        """Claims that are in the table as long as its history is the one known."""
        return {*self.written, self.newest} - {NONE}

    def _run(self, ask: Callable[[Connection], ClaimRead]) -> ClaimRead:
        with self._reading:
            return self._session.run(ask)

    def taken(self, read: ClaimRead) -> None:
        """Take what *read* has found for known, and so the reports of that time."""
        self.read_at = read.at
        self.know(read.there)
        self.written -= read.there
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
        """Delete claims that were closed long ago, if it is time for that."""
        if is_due(self._purged_at, PURGE_SECONDS, now):
            self._purged_at = now
            before = utc(now - PURGE_SECONDS) - KEPT  # they may be older than their commit
            self.database.write_retrying(lambda conn: claim_rows.purge(conn, before))


def _rows(connection: Connection, ids: Collection[int], there: Set[Pair]) -> tuple[list[Any], bool]:
    """The claims with these *ids*; and True if those of *there* still are, by the same look.

    The database may go back between the look for ids and this one, and ids come again.
    """
    known = dict(there)
    found = {row.id: row for row in claim_rows.by_ids(connection, {*ids, *known})}
    is_same = all(n in found and found[n].generation == known[n] for n in known)
    return [found[number] for number in sorted(ids) if number in found], is_same


def utc(seconds: float) -> datetime.datetime:
    """A time as columns hold it: naive UTC without a fraction of a second."""
    when = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return when.replace(tzinfo=None, microsecond=0)
