"""The poll of a fleet: one statement that tells which rows have changed since the last one.

Rows are found by their timestamps.  A poll looks back an overlap, for clocks that differ and
transactions that commit late.  Per second within it the server sends a checksum of the ids stamped
then.  A timestamp of whole seconds can be written several times, so the rows of recent seconds are
listed, each with a version of its content.  Older seconds are listed only where their checksum is
not that of the rows known here.  10,000 hosts that report every minute: 62 checksums and some 500
listed rows per poll, in place of 10,000 rows.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from scheduler.db.database import Database

#: A row may be written again with the timestamp that it was first seen with for so long: until the
#: second is over, and until a transaction that stamped within it has been committed.
SETTLE_SECONDS = 3.0
STAMPS = ("updated_at", "created_at", "deleted_at")
EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_IN_SECONDS_OF_MYSQL = 62167219200
#: Factor and modulus of the hash of an id; its products fit into 64 bits.
_FACTOR, _MODULUS = 1103515245, 2147483647
#: Condition that no row meets.
_NONE = "1 = 0"

Answers = Mapping[Any, Any]
Query = sa.ScalarSelect[Any]


class Dialect:
    """SQL expressions of the engine called *name*: ``sqlite``, ``mysql`` or ``postgresql``."""

    def __init__(self, name: str) -> None:
        self.name = name

    def second(self, column: sa.ColumnElement[Any]) -> sa.ColumnElement[int]:
        """Whole seconds since the epoch of a timestamp."""
        if self.name == "mysql":
            return sa.func.to_seconds(column) - _EPOCH_IN_SECONDS_OF_MYSQL
        if self.name == "sqlite":
            return sa.cast(sa.func.strftime("%s", column), sa.BigInteger)
        return sa.cast(sa.func.floor(sa.extract("epoch", column)), sa.BigInteger)

    def by_second(self, column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """Grouping of rows by second.  MySQL stores no fractions, and so can use its index."""
        return column if self.name == "mysql" else self.second(column)

    def joined(self, *parts: sa.ColumnElement[Any]) -> sa.ColumnElement[str]:
        """The *parts*, of which none is NULL, as one text with colons between them."""
        texts = [part if self.name == "mysql" else sa.cast(part, sa.Text) for part in parts]
        if self.name != "sqlite":
            return sa.func.concat_ws(":", *texts)
        text = texts[0]
        for each in texts[1:]:
            text = text + ":" + each
        return text

    def listed(self, text: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
        """The texts of all rows, with commas between them; NULL without rows.

        Not ``aggregate_strings``: SQLAlchemy 2.0 leaves parameters in it where literals are wanted.
        """
        if self.name == "postgresql":
            return sa.func.string_agg(text, sa.literal(",", sa.Text()))
        return sa.func.group_concat(text)

    def version(
        self, table: sa.Table, columns: Iterable[sa.ColumnElement[Any]]
    ) -> sa.ColumnElement[Any]:
        """Text or number that changes with the content of *columns*, or with any write."""
        if self.name == "postgresql":
            return sa.cast(sa.literal_column(f"{table.name}.xmin", sa.Text), sa.Text)
        null = sa.literal("~", sa.Text())
        texts = [sa.func.coalesce(sa.type_coerce(each, sa.Text()), null) for each in columns]
        return sa.func.crc32(self.joined(*texts))


class Compiled:
    """A SELECT that is fitted to *database* and put into SQL once.

    The names in ``sa.text("{name}")`` within it are replaced at every execution, by conditions
    and literals that need no quoting.  For a poll of 20 subqueries this saves 9 ms of each
    execution on Nova's tables, where the statement would be fitted every time.
    """

    def __init__(self, database: Database, statement: sa.Select[Any]) -> None:
        self._database = database
        self._statement = statement
        self._sql: str | None = None

    def execute(self, connection: sa.Connection, **texts: str) -> sa.CursorResult[Any]:
        """Execute it with the names in it replaced by *texts*."""
        if self._sql is None:
            fitted: Any = self._database.fitted(self._statement)
            how = {"literal_binds": True}
            self._sql = str(fitted.compile(dialect=connection.dialect, compile_kwargs=how))
        return connection.exec_driver_sql(self._sql.format(**texts))


def whole_second(when: datetime.datetime) -> int:
    """Seconds since the epoch of a naive UTC time, rounded down."""
    return int((when - EPOCH).total_seconds() // 1)


def _literal(second: float) -> str:
    """SQL for a time given in seconds since the epoch; the last there is for one too late."""
    try:
        when = EPOCH + datetime.timedelta(seconds=second)
    except OverflowError:
        when = datetime.datetime.max.replace(microsecond=0)
    return f"'{when.isoformat(' ')}'"


def _hash(row_id: Any) -> Any:
    """A hash of an id, in Python or in SQL: sums of it tell sets of ids apart."""
    mixed = row_id * _FACTOR % _MODULUS
    return mixed * mixed % _MODULUS


class _Stamped:
    """The known rows by one kind of timestamp, those within the overlap only."""

    def __init__(self) -> None:
        #: Version by id, by second; and the second by id.
        self._versions: dict[int, dict[int, str]] = {}
        self.seconds: dict[int, int] = {}
        self._sums: dict[int, int] = {}
        #: Seconds with rows that may be written again, and until when (clock of the polls).
        self._unsettled: dict[int, float] = {}
        #: Seconds that the next list is of: these, and all from one on.
        self._listed: tuple[set[int], float] = (set(), 0)

    def ask(
        self, column: str, now: float, recent: int | None = None, seconds: Iterable[int] = ()
    ) -> str:
        """Condition of the rows to list: from *recent* on and unsettled ones, or of *seconds*."""
        first = float("inf") if recent is None else recent
        if recent is not None:
            seconds = self._unsettled
            # Those that are over are listed once more, now.
            self._unsettled = {each: end for each, end in seconds.items() if end >= now}
        self._listed = ({each for each in seconds if each < first}, first)
        ranges = [
            f"{column} >= {_literal(each)} AND {column} < {_literal(each + 1)}"
            for each in sorted(self._listed[0])
        ]
        if recent is not None:
            ranges.append(f"{column} >= {_literal(recent)}")
        return f"({' OR '.join(ranges)})" if ranges else _NONE

    def take(self, text: str | None, since: int, now: float) -> set[int]:
        """Ids of the rows that came, changed or went since they were last listed."""
        for second in [each for each in self._versions if each < since]:
            for row_id in self._versions.pop(second):
                del self.seconds[row_id]
            del self._sums[second]
        found: set[int] = set()
        gone = {row_id for second in self._listed_seconds() for row_id in self._versions[second]}
        for entry in text.split(",") if text else ():
            texts = entry.split(":")
            number, when, version = int(texts[0]), int(texts[1]), texts[2]
            gone.discard(number)
            if self._versions.get(when, {}).get(number) != version:
                self._drop(number)
                self._versions.setdefault(when, {})[number] = version
                self.seconds[number] = when
                self._sums[when] = self._sums.get(when, 0) + _hash(number)
                self._unsettled[when] = now + SETTLE_SECONDS
                found.add(number)
        for number in gone:
            self._drop(number)
        return found | gone

    def differing(self, checksums: str | None, since: int) -> set[int]:
        """The seconds in which the server's rows are not those known here."""
        there = dict(each.split(":") for each in checksums.split(",")) if checksums else {}
        known = {str(each): str(total) for each, total in self._sums.items() if each >= since}
        return {int(each) for each, _total in there.items() ^ known.items()}

    def _listed_seconds(self) -> list[int]:
        several, first = self._listed
        return [each for each in self._versions if each >= first or each in several]

    def _drop(self, row_id: int) -> None:
        second = self.seconds.pop(row_id, None)
        if second is None:
            return
        del self._versions[second][row_id]
        self._sums[second] -= _hash(row_id)
        if not self._versions[second]:
            del self._versions[second], self._sums[second]


class ChangedRows:
    """The rows of one *table* touched lately; *columns* are those whose content counts.

    *queries* are, by name, the subqueries that a poll asks for them.
    """

    def __init__(
        self, dialect: Dialect, table: sa.Table, columns: Sequence[sa.ColumnElement[Any]]
    ) -> None:
        self.table = table
        self._dialect = dialect
        self._stamped = {name: _Stamped() for name in STAMPS}
        version = dialect.version(table, columns)
        self.queries: dict[str, Query] = {}
        for name in STAMPS:
            self.queries[self._name("sums", name)] = self._sums(name)
            self.queries[self._name("list", name)] = self._list(name, version)

    def _name(self, kind: str, stamp: str) -> str:
        return f"{self.table.name}_{kind}_{stamp}"

    def _counts(self, stamp: str) -> list[sa.ColumnElement[bool]]:
        """``created_at`` counts only until the first update."""
        return [self.table.c.updated_at.is_(None)] if stamp == "created_at" else []

    def _sums(self, stamp: str) -> Query:
        dialect, column = self._dialect, self.table.c[stamp]
        hashed = sa.func.sum(_hash(sa.cast(self.table.c.id, sa.BigInteger)))
        inner = (
            sa.select(dialect.second(column).label("second"), hashed.label("total"))
            .where(sa.text(f"{self.table.name}.{stamp} >= {{since}}"), *self._counts(stamp))
            .group_by(dialect.by_second(column))
            .subquery()
        )
        text = dialect.joined(inner.c.second, inner.c.total)
        return sa.select(dialect.listed(text)).scalar_subquery()

    def _list(self, stamp: str, version: sa.ColumnElement[Any]) -> Query:
        second = self._dialect.second(self.table.c[stamp])
        text = self._dialect.joined(self.table.c.id, second, version)
        query = sa.select(self._dialect.listed(text)).select_from(self.table)
        condition = sa.text(f"{{{self._name('list', stamp)}}}")
        return query.where(condition, *self._counts(stamp)).scalar_subquery()

    def ask(self, now: float, recent: int) -> dict[str, str]:
        """Conditions of a poll that lists rows stamped in the second *recent* or later."""
        return {
            self._name("list", name): each.ask(f"{self.table.name}.{name}", now, recent)
            for name, each in self._stamped.items()
        }

    def ask_again(self, answers: Answers, since: int, now: float) -> dict[str, str]:
        """Conditions that list only the seconds that *answers* have not explained."""
        return {
            self._name("list", name): each.ask(
                f"{self.table.name}.{name}",
                now,
                seconds=each.differing(answers[self._name("sums", name)], since),
            )
            for name, each in self._stamped.items()
        }

    def take(self, answers: Answers, since: int, now: float) -> set[int]:
        """Ids of the rows that a poll shows to be new, changed or gone.

        *now* is in seconds of a clock that never goes back.
        """
        found: set[int] = set()
        for name, each in self._stamped.items():
            found |= each.take(answers[self._name("list", name)], since, now)
        return found

    def is_known_deleted(self, row_id: int) -> bool:
        """True when the row was read as deleted within the overlap."""
        return row_id in self._stamped["deleted_at"].seconds


class FleetPoll:
    """The statement that tells what has changed in one *database*.

    It asks for the values of *state*, by name, and for the changed rows of two *tables*.
    """

    def __init__(
        self,
        database: Database,
        state: Mapping[str, Query],
        tables: tuple[ChangedRows, ChangedRows],
    ) -> None:
        self._tables = tables
        queries = dict(state)
        for each in tables:
            queries |= each.queries
        columns = [each.label(name) for name, each in queries.items()]
        self._statement = Compiled(database, sa.select(*columns))
        self._conditions: dict[str, str] = {}
        #: Answers of the last poll, if it found no changed rows.
        self._last: Answers | None = None

    def begin(self, since: int, recent: int, now: float) -> None:
        """Choose what to ask: rows stamped from *since* on, listed from *recent* on."""
        self._conditions = {"since": _literal(since)}
        for each in self._tables:
            self._conditions |= each.ask(now, recent)

    def finds_nothing(self, connection: sa.Connection) -> bool:
        """Ask if the last poll found nothing; True when its answers are still the same."""
        return self._last is not None and self._ask(connection) == self._last

    def run(
        self, connection: sa.Connection, since: int, now: float
    ) -> tuple[Answers, list[set[int]]]:
        """The answers by name, and for each table the ids of the rows that changed."""
        answers = self._ask(connection)
        found = [each.take(answers, since, now) for each in self._tables]
        for each in self._tables:
            self._conditions |= each.ask_again(answers, since, now)
        if any(name != "since" and each != _NONE for name, each in self._conditions.items()):
            listed = self._ask(connection)
            for each, ids in zip(self._tables, found, strict=True):
                ids |= each.take(listed, since, now)
        self._last = None if any(found) else answers
        return answers, found

    def _ask(self, connection: sa.Connection) -> Answers:
        return dict(self._statement.execute(connection, **self._conditions).mappings().one())
