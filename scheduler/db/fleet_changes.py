"""The poll of tables with triggers: each change of a row appends an entry to ``changes``.

A poll reads the entries above the last one, and again those of the last seconds: ids are drawn
before the commit, so that an entry may appear after those with higher ids.  The oldest entry that
is read again must be there as it was.  Otherwise the entries in between were removed, or the
database is another copy, and everything is read.
"""

import datetime
from collections import deque
from collections.abc import Set
from typing import Any, Final

import sqlalchemy as sa

from scheduler.db.database import Database
from scheduler.db.fleet_poll import Compiled, Dialect, News, entries_of
from scheduler.db.layout import layout_of
from scheduler.db.tables import changes
from scheduler.db.triggers import NOW

#: A reader that has not read for so long reads everything.
KEPT: Final = datetime.timedelta(minutes=10)


def are_kept(connection: sa.Connection) -> bool:
    """True where triggers append entries: ``db sync`` has written the first one itself."""
    if not layout_of(connection).has(changes.name):
        return False
    return connection.execute(sa.select(changes.c.id).limit(1)).first() is not None


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
    """Poll of one *database*.

    Entries that are committed up to *overlap* after they were written are found.
    """

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

    def begin(self, connection: sa.Connection, now: datetime.datetime, services: Set[int]) -> None:
        """Note what is known with a full read of the same snapshot."""
        del services  # an entry tells of those that go
        self._tops.clear()
        if (newest := _newest(connection)) is None:
            return
        settled = _newest(connection, changes.c.changed_at < newest.changed_at - self._overlap)
        first = settled.id if settled else 0
        self._tops += [(now - self._overlap, first), (now, newest.id)]
        self._entries = self._from(connection, first)

    def run(
        self, connection: sa.Connection, now: datetime.datetime, services: Set[int]
    ) -> News | None:
        """Return what has changed since the last call; None: only a full read shows that."""
        del services  # an entry tells of those that go
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
        return entries_of(self._query.execute(connection, first=first).scalar())
