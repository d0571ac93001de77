"""Which rows of a table were touched lately, found in one question however many there are.

The rows whose timestamps lie within the overlap are counted by the server, per second and with
checksums of their ids; only seconds that differ from what is known here are looked at closer.  A
timestamp of whole seconds may be given to several writes, so a row that is new here is asked for a
*version* of its whole content, too, until its second is over for every clock.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from scheduler.db.fragments import Fragments

#: A row may be written again under the timestamp it was first seen with for this long: until the
#: second is over, and until a transaction that stamped within it has been committed.
SETTLE_SECONDS = 3.0
#: What is at most this much older than now is listed without being asked for: by then a row is
#: settled that was stamped when it was written, and soon seen.
FRESH = datetime.timedelta(seconds=SETTLE_SECONDS + 2)
STAMPS = ("updated_at", "created_at", "deleted_at")

EPOCH = datetime.datetime(1970, 1, 1)

Question = sa.ScalarSelect[Any]
Answers = Mapping[Any, Any]
Entry = tuple[int, int, str]
"""A row's id, the second of its timestamp since the epoch, and its version."""


def whole_second(when: datetime.datetime) -> int:
    """Seconds since the epoch of a naive UTC time, rounded down."""
    return int((when - EPOCH).total_seconds() // 1)


class _Window:
    """Which rows have a timestamp of one kind within which second; *sql* sums them up."""

    def __init__(self, sql: Fragments) -> None:
        self._sql = sql
        self.second_of: dict[int, int] = {}
        self._ids: dict[int, set[int]] = {}
        self._sums: dict[int, list[int]] = {}

    def ids(self, second: int) -> set[int]:
        return self._ids.get(second, set())

    def place(self, row_id: int, second: int | None) -> None:
        before = self.second_of.pop(row_id, None)
        if before is not None:
            self._ids[before].discard(row_id)
            self._add(before, -1, row_id)
        if second is not None:
            self.second_of[row_id] = second
            self._ids.setdefault(second, set()).add(row_id)
            self._add(second, 1, row_id)

    def _add(self, second: int, sign: int, row_id: int) -> None:
        sums = self._sums.setdefault(second, [0, 0, 0])
        self._sql.count(sums, row_id, sign)
        if not sums[0]:
            del self._sums[second], self._ids[second]

    def is_empty(self, since: int) -> bool:
        return all(second < since for second in self._sums)

    def differing(self, digest: str | None, since: int) -> set[int]:
        """The seconds in which the server's rows are not those known here."""
        unlisted = {second for second in self._sums if second >= since}
        different = set()
        for part in digest.split(",") if digest else ():
            text, _, sums = part.partition(":")
            second = int(text)
            unlisted.discard(second)
            known = self._sums.get(second)
            if known is None or sums != f"{known[0]}:{known[1]}:{known[2]}":
                different.add(second)
        return different | unlisted

    def forget_before(self, since: int) -> None:
        for second in [each for each in self._sums if each < since]:
            del self._sums[second]
            for row_id in self._ids.pop(second):
                del self.second_of[row_id]


class TouchedRows:
    """What was touched lately in one *table*; *columns* are those whose content counts.

    The questions of :meth:`questions` go into a SELECT of the caller's; bound to them are
    ``since``, ``fresh`` (naive UTC) and what :meth:`parameters` gives.  Only rows are
    looked at for whose ids the condition *only* holds.
    """

    def __init__(
        self,
        dialect_name: str,
        table: sa.Table,
        columns: Sequence[sa.ColumnElement[Any]],
        stamps: Sequence[str] = STAMPS,
        only: Callable[[sa.ColumnElement[int]], sa.ColumnElement[bool]] | None = None,
    ) -> None:
        self.table = table
        self._only = only
        self.stamps = stamps
        self._sql = Fragments(dialect_name)
        self._version = self._sql.version(table, columns)
        self._windows = {stamp: _Window(self._sql) for stamp in stamps}
        #: Version and second of each row that may be written again under its timestamp, and until
        #: when: seconds of a clock that never goes back.
        self._unsettled: dict[int, tuple[str, int, float]] = {}
        #: None of these is of an earlier second.
        self._oldest: float = math.inf
        self._settled_at = (0, -math.inf)
        #: What the latest look listed, by question, while nobody has looked closer since.
        self._listed_last: dict[str, str | None] = {}
        self._listing = self._listing_statement()

    # --- questions -----------------------------------------------------------------------

    @property
    def is_settled(self) -> bool:
        """Whether no row is known that may be written again under its timestamp."""
        return not self._unsettled

    def is_quiet(self, since: int) -> bool:
        """Whether no row is known that was touched in the second *since* or later."""
        windows = self._windows.values()
        return self.is_settled and all(window.is_empty(since) for window in windows)

    def newest(self) -> list[sa.ColumnElement[Any]]:
        """For each kind of timestamp the second of the latest one in the whole table, or 0."""
        latest = [sa.func.max(self.table.c[stamp]) for stamp in self.stamps]
        asked = [sa.select(self._sql.second(each)).scalar_subquery() for each in latest]
        return [sa.func.coalesce(each, 0) for each in asked]

    def questions(self, *, closely: bool = True) -> dict[str, Question]:
        """By name what is asked at every read; only *closely* while something is unsettled."""
        found: dict[str, Question] = {}
        for stamp in self.stamps:
            found[self._name("digest", stamp)] = self._digest(stamp)
        for stamp in self.stamps if closely else ():
            fresh = self._chosen(stamp, sa.bindparam("fresh", type_=sa.DateTime()))
            found[self._name("fresh", stamp)] = self._listed(stamp, fresh)
        if not closely:
            return found
        again = self.table.c.id.in_(sa.bindparam(self._name("again"), expanding=True))
        found[self._name("again")] = self._listed("updated_at", again)
        return found

    def parameters(self, fresh: int) -> dict[str, Any]:
        """The values of this table's own parameters; *fresh* in seconds since the epoch."""
        again = []
        if self._oldest < fresh:
            again = [
                row_id
                for row_id, (_version, second, _until) in self._unsettled.items()
                if second < fresh
            ]
        return {self._name("again"): again}

    def _name(self, kind: str, stamp: str = "") -> str:
        return f"{self.table.name}_{kind}_{stamp}"

    def _within(
        self, stamp: str, lower: sa.BindParameter[Any], table: sa.FromClause | None = None
    ) -> sa.ColumnElement[bool]:
        columns = (self.table if table is None else table).c
        condition = columns[stamp] >= lower
        if self._only is not None:
            condition = sa.and_(condition, self._only(columns.id))
        if stamp == "created_at":  # counts only until the first update
            return sa.and_(condition, columns.updated_at.is_(None))
        return condition

    def _chosen(self, stamp: str, lower: sa.BindParameter[Any]) -> sa.ColumnElement[bool]:
        """The same, and where few of the rows are meant, no others are fetched to look at them."""
        if self._only is None:
            return self._within(stamp, lower)
        same = self.table.alias()
        return self.table.c.id.in_(sa.select(same.c.id).where(self._within(stamp, lower, same)))

    def _digest(self, stamp: str) -> Question:
        column = self.table.c[stamp]
        one, other = self._sql.checksums(self.table.c.id)
        inner = (
            sa.select(
                self._sql.second(column).label("second"),
                sa.func.count().label("rows_in_it"),
                one.label("one"),
                other.label("other"),
            )
            .where(self._within(stamp, sa.bindparam("since", type_=sa.DateTime())))
            .group_by(self._sql.grouping(column))
            .subquery()
        )
        text = self._sql.joined(inner.c.second, inner.c.rows_in_it, inner.c.one, inner.c.other)
        return sa.select(sa.func.aggregate_strings(text, ",")).scalar_subquery()

    def _listed(self, stamp: str, condition: sa.ColumnElement[bool]) -> Question:
        text = self._sql.joined(
            self.table.c.id,
            sa.func.coalesce(self._sql.second(self.table.c[stamp]), 0),
            self._version,
        )
        return sa.select(sa.func.aggregate_strings(text, ",")).where(condition).scalar_subquery()

    def _listing_statement(self) -> sa.Select[Any]:
        """The rows of certain seconds, for each kind of timestamp."""
        questions = []
        for stamp in self.stamps:
            column = self.table.c[stamp]
            condition = sa.and_(
                self._within(stamp, sa.bindparam(f"first_{stamp}", type_=sa.DateTime())),
                column < sa.bindparam(f"end_{stamp}", type_=sa.DateTime()),
                self._sql.second(column).in_(sa.bindparam(f"in_{stamp}", expanding=True)),
            )
            questions.append(self._listed(stamp, condition).label(stamp))
        return sa.select(*questions)

    # --- answers -------------------------------------------------------------------------

    def news(self, answers: Answers, since: int, fresh: int, now: float) -> set[int]:
        """Ids of rows that the *answers* show to be new, changed or written again.

        *since* and *fresh* are in seconds since the epoch, *now* in seconds of a clock that never
        goes back.  Where they are equal, everything within the overlap was listed.
        """
        found: set[int] = set()
        for row_id, _second, version in self._differently_listed(answers, self._name("again")):
            known = self._unsettled.get(row_id)
            if known is not None and known[0] != version:
                self._unsettled[row_id] = (version, known[1], now + SETTLE_SECONDS)
                found.add(row_id)
        for stamp, window in self._windows.items():
            window.forget_before(since)
            listed = self._differently_listed(answers, self._name("fresh", stamp))
            found.update(self._take(window, listed, now, again=fresh > since))
        self._settle(fresh, now)  # only now: however long ago the last look was, each had this one
        return found

    def differing(self, answers: Answers, since: int) -> dict[str, set[int]]:
        """By kind of timestamp the seconds that need a closer look, after :meth:`news`."""
        found = {
            stamp: window.differing(answers[self._name("digest", stamp)], since)
            for stamp, window in self._windows.items()
        }
        return {stamp: seconds for stamp, seconds in found.items() if seconds}

    def look_closer(
        self, connection: sa.Connection, differing: Mapping[str, set[int]], now: float
    ) -> set[int]:
        """Ids of the rows that make the seconds *differing*: those that came and those that left.

        What left may have been written again or be gone for good: read it to see.
        """
        answers = connection.execute(self._listing, self._bounds(differing)).one()._mapping
        self._listed_last.clear()
        found: set[int] = set()
        for stamp, seconds in differing.items():
            window = self._windows[stamp]
            listed = entries(answers[stamp])
            found.update(self._take(window, listed, now, again=False))
            there = {(row_id, second) for row_id, second, _version in listed}
            for second in seconds:
                for row_id in [each for each in window.ids(second) if (each, second) not in there]:
                    window.place(row_id, None)
                    found.add(row_id)
        return found

    def is_known_deleted(self, row_id: int) -> bool:
        """Whether the row was seen deleted within the overlap."""
        return row_id in self._windows["deleted_at"].second_of

    def _differently_listed(self, answers: Answers, name: str) -> list[Entry]:
        """The entries of one list; none where it is the same as the last time.

        Most looks find what the one before has found, which need not be taken apart again.
        """
        text = answers.get(name)
        if text is not None and text == self._listed_last.get(name):
            return []
        self._listed_last[name] = text
        return entries(text)

    def _take(
        self, window: _Window, listed: Iterable[Entry], now: float, *, again: bool
    ) -> Iterable[int]:
        for row_id, second, version in listed:
            known = self._unsettled.get(row_id)
            moved = window.second_of.get(row_id) != second
            if moved:
                window.place(row_id, second)
            if moved or (again if known is None else known[0] != version):
                self._unsettled[row_id] = (version, second, now + SETTLE_SECONDS)
                self._oldest = min(self._oldest, second)
                yield row_id

    def _settle(self, fresh: int, now: float) -> None:
        """Forget what cannot be written again; looked for once a second."""
        before, then = self._settled_at
        if fresh == before and then <= now < then + 1:
            return
        self._settled_at = fresh, now
        settled = [
            row_id
            for row_id, (_version, second, until) in self._unsettled.items()
            if until < now and second < fresh
        ]
        for row_id in settled:
            del self._unsettled[row_id]
        left = (second for _version, second, _until in self._unsettled.values())
        self._oldest = min(left, default=math.inf)

    def _bounds(self, differing: Mapping[str, set[int]]) -> dict[str, Any]:
        bounds: dict[str, Any] = {}
        for stamp in self.stamps:
            seconds = sorted(differing.get(stamp, ()))
            first, end = (seconds[0], seconds[-1] + 1) if seconds else (0, 0)
            bounds[f"first_{stamp}"] = _moment(first)
            bounds[f"end_{stamp}"] = _moment(end)
            bounds[f"in_{stamp}"] = seconds
        return bounds


def _moment(second: int) -> datetime.datetime:
    """That second; the last moment there is, where a row says something later."""
    try:
        return EPOCH + datetime.timedelta(seconds=second)
    except OverflowError:
        return datetime.datetime.max


def entries(text: str | None) -> list[Entry]:
    """What a list put together by the server says."""
    if not text:
        return []
    parts = (part.split(":") for part in text.split(","))
    return [(int(row_id), int(second), version) for row_id, second, version in parts]
