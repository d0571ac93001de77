"""Polls of the fleet: what has changed since the last one.

*With triggers* each change of a row appends an entry to ``changes``.  A poll reads those above the
last entry, and again those of the last seconds: ids are drawn before the commit, so that an entry
may appear after those with higher ids.  The oldest entry that is read again must be there as it
was.  Otherwise entries were removed, or the database is another copy, and everything is read.

*Tables that Nova made* have none.  A poll lists the rows stamped since the last poll began, or in a
short overlap before that; the latest with a version of their content, as timestamps have whole
seconds.  What was committed too late for the overlap, and nodes that vanish without a trace, are
found by a look back, once a minute and beside the requests.
"""

import datetime
from collections import deque
from collections.abc import Set
from typing import Any, Final

import sqlalchemy as sa

from scheduler.db import fleet_rows, tables
from scheduler.db.database import Database
from scheduler.db.fleet_rows import Compiled, Dialect, News
from scheduler.db.layout import layout_of
from scheduler.db.migration import NOW
from scheduler.db.tables import changes

#: A reader that has not read for so long reads everything.
KEPT: Final = datetime.timedelta(minutes=10)


def are_kept(connection: sa.Connection) -> bool:
    """True where triggers append entries: ``db sync`` has written the first one itself."""
    return layout_of(connection).has(changes.name) and _newest(connection) is not None


def remove_old(connection: sa.Connection) -> None:
    """Delete the entries that are older than :data:`KEPT`, but for the newest.

    Times are those of the database.  Entries come nearly in the order of their times.
    """
    newest = _newest(connection) if layout_of(connection).has(changes.name) else None
    if newest is None:
        return
    server_time = sa.literal_column(NOW[connection.dialect.name], sa.DateTime)
    now: datetime.datetime = connection.execute(sa.select(server_time)).scalar_one()
    recent = sa.select(changes.c.id).where(changes.c.changed_at >= now - KEPT)
    first = connection.execute(recent.order_by(changes.c.id).limit(1)).scalar()
    kept_from = newest.id if first is None else min(first, newest.id)
    connection.execute(changes.delete().where(changes.c.id < kept_from))


def _newest(connection: sa.Connection, *criteria: sa.ColumnElement[bool]) -> Any:
    query = sa.select(changes.c.id, changes.c.changed_at).where(*criteria)
    return connection.execute(query.order_by(changes.c.id.desc()).limit(1)).first()


class ChangesPoll:
    """Poll of one *database*, which finds entries committed up to *overlap* after writing."""

    late = 0

    def __init__(self, database: Database, overlap: datetime.timedelta) -> None:
        self._overlap = overlap
        dialect = Dialect(database.dialect_name)
        entry = dialect.joined(changes.c.id, changes.c.kind, changes.c.row_id)
        listed = sa.select(dialect.listed(entry)).select_from(changes)
        self._query = Compiled(database, listed.where(sa.text("id >= {first}")))
        #: The times of the last reads with the highest ids then, oldest first.  From the first
        #: of these ids on, entries are read again; empty: no entry is known.
        self._tops: deque[tuple[datetime.datetime, int]] = deque()
        self._entries: set[str] = set()

    def begin(self, connection: sa.Connection, now: datetime.datetime, services: int) -> None:
        """Note what is known with a full read of the same snapshot."""
        self._tops.clear()
        if (newest := _newest(connection)) is None:
            return
        settled = _newest(connection, changes.c.changed_at < newest.changed_at - self._overlap)
        first = settled.id if settled else 0
        self._tops += [(now - self._overlap, first), (now, newest.id)]
        self._entries = self._from(connection, first)

    def run(self, connection: sa.Connection, now: datetime.datetime, services: int) -> News | None:
        """Return what has changed since the last call; None: only a full read shows that."""
        if not self._tops:
            return None
        first, top = self._tops[0][1], self._tops[-1][1]
        entries = self._from(connection, first)
        if not entries >= self._entries:
            return None
        news: News = {}
        for each in entries - self._entries:
            number, kind, row_id = each.split(":")
            news.setdefault(kind, set()).add(int(row_id))
            top = max(top, int(number))
        self._tops.append((now, top))
        while len(self._tops) > 1 and self._tops[1][0] <= now - self._overlap:
            self._tops.popleft()
        if (rest := self._tops[0][1]) > first:
            entries = {each for each in entries if int(each.partition(":")[0]) >= rest}
        self._entries = entries
        return news

    def _from(self, connection: sa.Connection, first: int) -> set[str]:
        return fleet_rows.entries_of(self._query.execute(connection, first=first).scalar())


#: A row that is committed so long after its timestamp is found by a look back: transactions stay
#: open, and clocks differ, but not by more.
LOOK_BACK: Final = datetime.timedelta(seconds=60)
#: A row may get the timestamp that it was seen with once more, until that second is over and who
#: stamped within it has committed: not in so much of the overlap, its oldest part.
SETTLED: Final = datetime.timedelta(seconds=2)
_STAMPS: Final = ("updated_at", "created_at", "deleted_at")
#: Columns whose contents tell a second write within a second, of rows just written.
_COLUMNS: Final = {
    fleet_rows.NODES: fleet_rows.CHANGING_COLUMNS,
    fleet_rows.INSTANCES: fleet_rows.INSTANCE_COLUMNS[1:],
}
_STAMPED: Final = [kind for kind in _COLUMNS for _stamp in _STAMPS]
#: The kinds of rows in each part of a poll's answer.
_PARTS: Final = (*_STAMPED, *_COLUMNS, fleet_rows.FLAGS, fleet_rows.MEMBERS)
_END_OF_PART: Final = ";"


def _listings(dialect: Dialect) -> list[Any]:
    """Queries for all parts but the last two; names in braces are times.

    Indexes alone tell the timestamps; only the latest rows have a version of their content.
    """

    def listing(kind: str, stamp: str, since: str, said: sa.ColumnElement[Any]) -> Any:
        table = tables.metadata.tables[kind]
        listed = sa.select(dialect.listed(dialect.joined(table.c.id, said))).select_from(table)
        return listed.where(sa.text(f"{kind}.{stamp} >= {since}")).scalar_subquery()

    by_stamp = [
        listing(kind, stamp, "{since}", tables.metadata.tables[kind].c[stamp])
        for kind in _COLUMNS
        for stamp in _STAMPS
    ]
    return by_stamp + [
        listing(kind, "updated_at", "{recent}", dialect.version(content[0].table, content))
        for kind, content in _COLUMNS.items()
    ]


class StampsPoll:
    """Poll of one *database*; aggregates are left to others.

    ``late`` counts the rows, since it was set back, that only a look back has found.
    """

    def __init__(self, database: Database, overlap: datetime.timedelta) -> None:
        self._overlap = overlap
        dialect = Dialect(database.dialect_name)
        listings = _listings(dialect)
        services, nodes = tables.services.c, tables.compute_nodes.c
        said = dialect.texts(*fleet_rows.SERVICE_FLAGS, services.disabled_reason)
        flagged = dialect.listed(dialect.joined(services.id, dialect.digest(dialect.joined(*said))))
        is_flagged = sa.or_(*(each == sa.true() for each in fleet_rows.SERVICE_FLAGS))
        state = sa.select(flagged).where(*fleet_rows.LIVING_SERVICES, is_flagged).scalar_subquery()
        newest = sa.select(sa.func.coalesce(sa.func.max(services.id), 0)).scalar_subquery()

        def compiled(*parts: Any) -> Compiled:
            return Compiled(database, sa.select(dialect.joined(*parts, separator=_END_OF_PART)))

        self._query = compiled(*listings, state, newest)
        there = sa.select(dialect.listed(dialect.joined(nodes.id))).where(nodes.deleted == 0)
        self._look_query = compiled(*listings[: len(_STAMPED)], there.scalar_subquery())
        self._read_at = self._looked_at = datetime.datetime.min
        self._answer = ""
        #: Entries in each part of the last answer.
        self._listed: list[set[str]] = [set() for _part in _PARTS]
        #: Entries by timestamp of the last look back and all polls since.
        self._known: list[set[str]] = []
        self._nodes: Set[int] = frozenset()
        self._services = 0
        #: Another thread appends entries by timestamp, and the ids of the living nodes.
        self._looked: deque[tuple[list[set[str]], Set[int]]] = deque(maxlen=1)
        self.late = 0

    def begin(self, connection: sa.Connection, now: datetime.datetime, services: int) -> None:
        """Note what is known with a full read of the same snapshot."""
        self._look(connection, now - max(LOOK_BACK, self._overlap))
        self._known, self._nodes = self._looked.popleft()
        self._services = services
        self._looked_at = self._read_at = now
        self.run(connection, now, services)

    def run(self, connection: sa.Connection, now: datetime.datetime, services: int) -> News:
        """Return what has changed since the last call, with another *services* some of them."""
        since = self._read_at - self._overlap
        recent, self._read_at = min(since + SETTLED, self._read_at), now
        times = {"since": _literal(since), "recent": _literal(recent)}
        answer: str = self._query.execute(connection, **times).scalar_one()
        news: News = {kind: set() for kind in _PARTS}
        if answer != self._answer:
            self._answer, before = answer, self._listed
            self._listed = _parts(answer)
            for kind, entries, known in zip(_PARTS, self._listed, before, strict=True):
                new = entries ^ known if kind == fleet_rows.FLAGS else entries - known
                news[kind] |= fleet_rows.numbers_of(new)
            for known, entries in zip(self._known, self._listed, strict=False):
                known.update(entries)
        self._take_looked(news)
        if services != self._services:
            news[fleet_rows.MEMBERS].add(services)  # whatever is there has all of them read
            self._services = services
        return {kind: ids for kind, ids in news.items() if ids}

    def _take_looked(self, news: News) -> None:
        if not self._looked:
            return
        looked, there = self._looked.popleft()
        for kind, entries, known in zip(_STAMPED, looked, self._known, strict=True):
            late = fleet_rows.numbers_of(entries - known) - news[kind]
            self.late += len(late)
            news[kind] |= late
        self._known = [a | b for a, b in zip(looked, self._listed, strict=False)]
        before, self._nodes = self._nodes, there
        news[fleet_rows.NODES] |= before ^ self._nodes

    def look_back(self, connection: sa.Connection, now: datetime.datetime) -> None:
        """Find what was committed late, if that is due; in another thread than the runs."""
        if not self._looked_at <= now < self._looked_at + LOOK_BACK:
            self._look(connection, min(self._looked_at, now) - LOOK_BACK)
            self._looked_at = now

    def _look(self, connection: sa.Connection, since: datetime.datetime) -> None:
        found = self._look_query.execute(connection, since=_literal(since))
        *looked, there = _parts(found.scalar_one())
        self._looked.append((looked, fleet_rows.numbers_of(there)))


def _parts(answer: str) -> list[set[str]]:
    return [fleet_rows.entries_of(each) for each in answer.split(_END_OF_PART)]


def _literal(when: datetime.datetime) -> str:
    return f"'{when.replace(microsecond=0).isoformat(' ')}'"
