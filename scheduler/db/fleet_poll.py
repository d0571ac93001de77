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
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
Query = sa.ColumnElement[Any]


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

    def joined(self, *parts: sa.ColumnElement[Any], separator: str = ":") -> sa.ColumnElement[str]:
        """The *parts*, of which none is NULL, as one text."""
        texts = [part if self.name == "mysql" else sa.cast(part, sa.Text) for part in parts]
        if self.name != "sqlite":
            return sa.func.concat_ws(separator, *texts)
        text = texts[0]
        for each in texts[1:]:
            text = text + separator + each
        return text

    def listed(self, text: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
        """The texts of all rows, with commas between them.

        Not ``aggregate_strings``: SQLAlchemy 2.0 leaves parameters in it where literals are wanted.
        """
        if self.name == "postgresql":
            listed = sa.func.string_agg(text, sa.literal(",", sa.Text()))
        else:
            listed = sa.func.group_concat(text)
        return sa.func.coalesce(listed, sa.literal("", sa.Text()))

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


class ChangedRows:
    """The rows of one *table* touched lately; *columns* are those whose content counts.

    A mark is one timestamp of one row.  *queries* are, by name, the subqueries that a poll asks.
    """

    def __init__(
        self, dialect: Dialect, table: sa.Table, columns: Sequence[sa.ColumnElement[Any]]
    ) -> None:
        self.columns = columns
        self._table = table.name
        #: Of the known marks within the overlap: version by mark, by second; second by mark.
        self._versions: dict[int, dict[int, str]] = {}
        self._seconds: dict[int, int] = {}
        self._sums: dict[int, int] = {}
        #: Seconds with rows that may be written again, and until when (clock of the polls).
        self._unsettled: dict[int, float] = {}
        #: Seconds that the next list is of: these, and all from one on.
        self._listed: tuple[set[int], float] = (set(), 0)
        version = dialect.version(table, columns)
        texts: dict[str, list[sa.ColumnElement[str]]] = {"sums": [], "list": []}
        for place, stamp in enumerate(STAMPS):
            column, second = table.c[stamp], dialect.second(table.c[stamp])
            mark = sa.cast(table.c.id, sa.BigInteger) * len(STAMPS) + place
            # created_at counts only until the first update.
            counts = [table.c.updated_at.is_(None)] if stamp == "created_at" else []
            sums = (
                sa.select(second.label("second"), sa.func.sum(_hash(mark)).label("total"))
                .where(sa.text(f"{self._table}.{stamp} >= {{since}}"), *counts)
                .group_by(dialect.by_second(column))
                .subquery()
            )
            listed = sa.select(dialect.listed(dialect.joined(mark, second, version)))
            condition = sa.text(f"{{{self._table}_{stamp}}}")
            listed = listed.select_from(table).where(condition, *counts)
            texts["list"].append(listed.scalar_subquery())
            listed = sa.select(dialect.listed(dialect.joined(sums.c.second, sums.c.total)))
            texts["sums"].append(listed.scalar_subquery())
        #: By name: second and sum of each second, and mark, second and version of each row.
        self.queries = {
            f"{self._table}_{kind}": dialect.joined(*several, separator=",")
            for kind, several in texts.items()
        }

    def _entries(self, answers: Answers, kind: str) -> Iterator[list[str]]:
        texts = answers[f"{self._table}_{kind}"].split(",")
        return (each.split(":") for each in texts if each)

    def ask(self, since: int, recent: int, now: float) -> dict[str, str]:
        """Conditions that list the rows stamped from *recent* on, and those not settled yet."""
        seconds = {each: end for each, end in self._unsettled.items() if each >= since}
        # Those that are over are listed once more, now.
        self._unsettled = {each: end for each, end in seconds.items() if end >= now}
        return self._conditions(seconds, recent)

    def ask_again(self, answers: Answers, since: int) -> dict[str, str]:
        """Conditions that list only the seconds whose rows in *answers* are not those known."""
        there: dict[int, int] = {}
        for second, total in self._entries(answers, "sums"):
            there[int(second)] = there.get(int(second), 0) + int(total)
        known = {each: total for each, total in self._sums.items() if each >= since}
        return self._conditions({each for each, _total in there.items() ^ known.items()})

    def _conditions(self, seconds: Iterable[int], first: float = math.inf) -> dict[str, str]:
        self._listed = ({each for each in seconds if each < first}, first)
        ranges = [(each, each + 1) for each in sorted(self._listed[0])]
        conditions = {}
        for stamp in STAMPS:
            column = f"{self._table}.{stamp}"
            texts = [
                f"{column} >= {_literal(begin)} AND {column} < {_literal(end)}"
                for begin, end in ranges
            ]
            if first < math.inf:
                texts.append(f"{column} >= {_literal(first)}")
            conditions[f"{self._table}_{stamp}"] = f"({' OR '.join(texts)})" if texts else _NONE
        return conditions

    def take(self, answers: Answers, since: int, now: float) -> set[int]:
        """Ids of the rows that came, changed or went since they were last listed.

        *now* is in seconds of a clock that never goes back.
        """
        for second in [each for each in self._versions if each < since]:
            for mark in self._versions.pop(second):
                del self._seconds[mark]
            del self._sums[second]
        seconds, first = self._listed
        listed = [each for each in self._versions if each >= first or each in seconds]
        gone = {mark for second in listed for mark in self._versions[second]}
        found: set[int] = set()
        for *numbers, version in self._entries(answers, "list"):
            mark, second = map(int, numbers)
            gone.discard(mark)
            if self._versions.get(second, {}).get(mark) != version:
                self._drop(mark)
                self._versions.setdefault(second, {})[mark] = version
                self._seconds[mark] = second
                self._sums[second] = self._sums.get(second, 0) + _hash(mark)
                self._unsettled[second] = now + SETTLE_SECONDS
                found.add(mark)
        for mark in gone:
            self._drop(mark)
        return {mark // len(STAMPS) for mark in found | gone}

    def _drop(self, mark: int) -> None:
        second = self._seconds.pop(mark, None)
        if second is None:
            return
        del self._versions[second][mark]
        self._sums[second] -= _hash(mark)
        if not self._versions[second]:
            del self._versions[second], self._sums[second]

    def is_known_deleted(self, row_id: int) -> bool:
        """True when the row was read as deleted within the overlap."""
        return row_id * len(STAMPS) + STAMPS.index("deleted_at") in self._seconds


class FleetPoll:
    """The statement that tells what has changed in one *database*.

    It asks for the values of *state*, by name, and for the changed rows of two *tables*.
    """

    def __init__(
        self, database: Database, state: Mapping[str, Query], tables: Sequence[ChangedRows]
    ) -> None:
        self._state = state
        self._tables = tables
        queries = dict(state)
        for each in tables:
            queries |= each.queries
        columns = [each.label(name) for name, each in queries.items()]
        self._statement = Compiled(database, sa.select(*columns))

    def run(
        self, connection: sa.Connection, since: int, recent: int, now: float
    ) -> tuple[Answers, list[set[int]]]:
        """The state by name, and for each table the ids of the rows that changed.

        Rows stamped from *since* on are polled, those from *recent* on are listed.
        """
        texts = {"since": _literal(since)}
        for table in self._tables:
            texts |= table.ask(since, recent, now)
        answers = self._ask(connection, texts)
        found = [table.take(answers, since, now) for table in self._tables]
        again: dict[str, str] = {}
        for table in self._tables:
            again |= table.ask_again(answers, since)
        if any(each != _NONE for each in again.values()):
            listed = self._ask(connection, {**texts, **again})
            for table, ids in zip(self._tables, found, strict=True):
                ids |= table.take(listed, since, now)
        return {name: answers[name] for name in self._state}, found

    def _ask(self, connection: sa.Connection, texts: Mapping[str, str]) -> Answers:
        return dict(self._statement.execute(connection, **texts).mappings().one())
