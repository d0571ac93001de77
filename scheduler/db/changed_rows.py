"""Detection of the changed rows of a table by their timestamps, in one poll.

A poll looks back an overlap, for clocks that differ and transactions that commit late.  Per second
within it the server sends a digest: the number of rows with that timestamp and checksums of their
ids.  A timestamp of whole seconds can be written several times, so the rows of recent seconds are
listed, each with a version of its content.  Older seconds are listed only where their digest is
not that of the rows known here.  10,000 hosts that report every minute: 62 digests and some 500
listed rows per poll, in place of 10,000 rows.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from scheduler.db.dialects import Dialect

#: A row may be written again with the timestamp that it was first seen with for so long: until the
#: second is over, and until a transaction that stamped within it has been committed.
SETTLE_SECONDS = 3.0
STAMPS = ("updated_at", "created_at", "deleted_at")
EPOCH = datetime.datetime(1970, 1, 1)
#: Second checksum: the sum of id * (id & this).
_MASK = 1023
_NOTHING = "1 = 0"

Answers = Mapping[Any, Any]
Query = sa.ScalarSelect[Any]
Entry = tuple[int, int, str]
"""A row's id, the second of its timestamp since the epoch, and its version."""


def whole_second(when: datetime.datetime) -> int:
    """Seconds since the epoch of a naive UTC time, rounded down."""
    return int((when - EPOCH).total_seconds() // 1)


def literal(second: float) -> str:
    """SQL for a time given in seconds since the epoch; the last there is for one too late."""
    try:
        when = EPOCH + datetime.timedelta(seconds=second)
    except OverflowError:
        when = datetime.datetime.max.replace(microsecond=0)
    return f"'{when.isoformat(' ')}'"


class _Stamp:
    """The known rows by one kind of timestamp, those within the overlap only."""

    def __init__(self) -> None:
        self.rows: dict[int, tuple[int, str]] = {}
        self._ids: dict[int, set[int]] = {}
        self._sums: dict[int, tuple[int, int, int]] = {}
        #: Seconds with rows that may be written again, and until when (clock of the polls).
        self._unsettled: dict[int, float] = {}
        #: What the next poll lists: all from this second on, and these others.
        self._listed_from: float = 0
        self._listed_seconds: set[int] = set()
        self._last_list: str | None = None

    @property
    def is_settled(self) -> bool:
        return not self._unsettled

    def is_empty(self, since: int) -> bool:
        return all(second < since for second in self._sums)

    def forget_before(self, since: int) -> None:
        for second in [each for each in self._sums if each < since]:
            for row_id in self._ids.pop(second):
                del self.rows[row_id]
            del self._sums[second]
        self._unsettled = {each: until for each, until in self._unsettled.items() if each >= since}

    def choose(self, column: str, listed_from: float | None, seconds: Iterable[int] = ()) -> str:
        """Condition of the rows to list: unsettled *seconds* and all from *listed_from* on.

        None: nothing but the *seconds*.
        """
        self._listed_from = float("inf") if listed_from is None else listed_from
        wanted = set(seconds) if listed_from is None else set(self._unsettled)
        self._listed_seconds = {each for each in wanted if each < self._listed_from}
        ranges = [
            f"{column} >= {literal(each)} AND {column} < {literal(each + 1)}"
            for each in sorted(self._listed_seconds)
        ]
        if listed_from is not None:
            ranges.append(f"{column} >= {literal(listed_from)}")
        return f"({' OR '.join(ranges)})" if ranges else _NOTHING

    def take(self, text: str | None, now: float) -> set[int]:
        """Ids of the rows that came, changed or went since they were last listed."""
        found: set[int] = set()
        if text is None or text != self._last_list:  # else a poll that found nothing new
            found = self._compare(entries(text), now)
        self._last_list = text
        return found

    def settle(self, now: float) -> None:
        """End the listing of seconds that are over, after a poll: each was listed once more."""
        self._unsettled = {each: until for each, until in self._unsettled.items() if until >= now}

    def _compare(self, listed: Sequence[Entry], now: float) -> set[int]:
        found: set[int] = set()
        present: dict[int, set[int]] = {}
        for row_id, second, version in listed:
            present.setdefault(second, set()).add(row_id)
            if self.rows.get(row_id) != (second, version):
                self._put(row_id, second, version)
                self._unsettled[second] = now + SETTLE_SECONDS
                found.add(row_id)
        for second in [each for each in self._sums if self._is_listed(each)]:
            gone = self._ids[second] - present.get(second, set())
            for row_id in gone:
                self._drop(row_id)
            found |= gone
        return found

    def _is_listed(self, second: int) -> bool:
        return second >= self._listed_from or second in self._listed_seconds

    def differing(self, digests: str | None, since: int) -> set[int]:
        """The seconds in which the server's rows are not those known here."""
        unseen = {second for second in self._sums if second >= since}
        different = set()
        for digest in digests.split(",") if digests else ():
            text, _, sums = digest.partition(":")
            second = int(text)
            unseen.discard(second)
            known = self._sums.get(second)
            if known is None or sums != f"{known[0]}:{known[1]}:{known[2]}":
                different.add(second)
        return different | unseen

    def _put(self, row_id: int, second: int, version: str) -> None:
        self._drop(row_id)
        self.rows[row_id] = (second, version)
        self._ids.setdefault(second, set()).add(row_id)
        self._count(second, row_id, 1)

    def _drop(self, row_id: int) -> None:
        second, _version = self.rows.pop(row_id, (None, ""))
        if second is not None:
            self._ids[second].discard(row_id)
            self._count(second, row_id, -1)

    def _count(self, second: int, row_id: int, sign: int) -> None:
        rows, one, other = self._sums.get(second, (0, 0, 0))
        if rows + sign:
            weighted = row_id * (row_id & _MASK)
            self._sums[second] = rows + sign, one + sign * row_id, other + sign * weighted
        else:
            del self._sums[second], self._ids[second]


class ChangedRows:
    """The rows of one *table* that were touched lately; *columns* are those whose content counts.

    The subqueries of :meth:`queries` go into a poll of the caller's, in which ``since`` and
    :meth:`conditions` are filled in.
    """

    def __init__(
        self, dialect: Dialect, table: sa.Table, columns: Sequence[sa.ColumnElement[Any]]
    ) -> None:
        self.table = table
        self._dialect = dialect
        self._version = dialect.version(table, columns)
        self._stamps = {name: _Stamp() for name in STAMPS}

    # --- SQL -----------------------------------------------------------------------------

    def newest(self) -> list[sa.ColumnElement[Any]]:
        """For each kind of timestamp the second of the latest one in the whole table, or 0."""
        latest = [sa.func.max(self.table.c[name]) for name in STAMPS]
        asked = [sa.select(self._dialect.second(each)).scalar_subquery() for each in latest]
        return [sa.func.coalesce(each, 0) for each in asked]

    def queries(self) -> dict[str, Query]:
        """By name the digests and the lists of a poll."""
        return {
            **{self._name("digest", stamp): self._digest(stamp) for stamp in STAMPS},
            **{self._name("list", stamp): self._list(stamp) for stamp in STAMPS},
        }

    def conditions(
        self, listed_from: int | None, seconds: Mapping[str, set[int]] | None = None
    ) -> dict[str, str]:
        """Conditions of a poll that lists rows stamped *listed_from* (second) or later.

        None: of one that lists only the rows of these *seconds*, by kind of timestamp.
        """
        chosen = seconds or {}
        return {
            self._name("list", name): stamp.choose(
                f"{self.table.name}.{name}", listed_from, chosen.get(name, ())
            )
            for name, stamp in self._stamps.items()
        }

    def _name(self, kind: str, stamp: str) -> str:
        return f"{self.table.name}_{kind}_{stamp}"

    def _counts(self, stamp: str) -> list[sa.ColumnElement[bool]]:
        """``created_at`` counts only until the first update."""
        return [self.table.c.updated_at.is_(None)] if stamp == "created_at" else []

    def _digest(self, stamp: str) -> Query:
        dialect, column = self._dialect, self.table.c[stamp]
        row_id = sa.cast(self.table.c.id, sa.BigInteger)
        inner = (
            sa.select(
                dialect.second(column).label("second"),
                sa.func.count().label("rows_in_it"),
                sa.func.sum(row_id).label("one"),
                sa.func.sum(row_id * row_id.bitwise_and(_MASK)).label("other"),
            )
            .where(sa.text(f"{self.table.name}.{stamp} >= {{since}}"), *self._counts(stamp))
            .group_by(dialect.by_second(column))
            .subquery()
        )
        text = dialect.joined(inner.c.second, inner.c.rows_in_it, inner.c.one, inner.c.other)
        return sa.select(dialect.listed(text)).scalar_subquery()

    def _list(self, stamp: str) -> Query:
        second = self._dialect.second(self.table.c[stamp])
        text = self._dialect.joined(self.table.c.id, second, self._version)
        condition = sa.text(f"{{{self._name('list', stamp)}}}")
        query = sa.select(self._dialect.listed(text)).select_from(self.table)
        return query.where(condition, *self._counts(stamp)).scalar_subquery()

    # --- answers -------------------------------------------------------------------------

    def is_quiet(self, since: int) -> bool:
        """True when no known row was touched in the second *since* or later."""
        stamps = self._stamps.values()
        return all(each.is_settled and each.is_empty(since) for each in stamps)

    def take(self, answers: Answers, since: int, now: float) -> set[int]:
        """Ids of the rows that a poll shows to be new, changed or gone.

        *now* is in seconds of a clock that never goes back.
        """
        found: set[int] = set()
        for name, stamp in self._stamps.items():
            stamp.forget_before(since)
            found |= stamp.take(answers[self._name("list", name)], now)
        return found

    def differing(self, answers: Answers, since: int) -> dict[str, set[int]]:
        """By kind of timestamp the seconds that a poll has not explained: list them by another."""
        return {
            name: stamp.differing(answers[self._name("digest", name)], since)
            for name, stamp in self._stamps.items()
        }

    def settle(self, now: float) -> None:
        """End what the poll was asked to list once more."""
        for stamp in self._stamps.values():
            stamp.settle(now)

    def is_known_deleted(self, row_id: int) -> bool:
        """True when the row was read as deleted within the overlap."""
        return row_id in self._stamps["deleted_at"].rows


def entries(text: str | None) -> list[Entry]:
    """The entries of a list from the server."""
    if not text:
        return []
    parts = (part.split(":") for part in text.split(","))
    return [(int(row_id), int(second), version) for row_id, second, version in parts]
