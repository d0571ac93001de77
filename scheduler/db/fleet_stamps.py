"""The poll of tables that Nova made, which have no triggers: rows are found by their timestamps.

A poll lists the rows that were stamped since the last poll began, or in a short overlap before
that, with a version of their content: a timestamp of whole seconds can be written several times.
Rows that were committed too late for the overlap, and nodes that vanish without a trace, are found
by a look back, once a minute and beside the requests.
"""

import datetime
from collections import deque
from collections.abc import Set
from typing import Any, Final

import sqlalchemy as sa

from scheduler.db import tables
from scheduler.db.database import Database
from scheduler.db.fleet_poll import (
    FLAGS,
    INSTANCES,
    MEMBERS,
    NODES,
    Compiled,
    Dialect,
    News,
    entries_of,
    numbers_of,
)
from scheduler.db.fleet_rows import (
    INSTANCE_COLUMNS,
    LIVING_SERVICES,
    NODE_COLUMNS,
    SERVICE_FLAGS,
)

#: A row that is committed so long after its timestamp is found by a look back: transactions stay
#: open, and clocks differ, but not by more.
LOOK_BACK: Final = datetime.timedelta(seconds=60)
_STAMPS: Final = ("updated_at", "created_at", "deleted_at")
_COLUMNS: Final = {NODES: NODE_COLUMNS, INSTANCES: INSTANCE_COLUMNS}


def _listing(dialect: Dialect, kind: str) -> sa.ScalarSelect[Any]:
    """Query for id and version of the rows that were stamped since."""
    row_id, *content = _COLUMNS[kind]
    table = tables.metadata.tables[kind]
    stamped = sa.text(" OR ".join(f"{kind}.{stamp} >= {{since}}" for stamp in _STAMPS))
    entry = dialect.joined(row_id, dialect.version(table, content))
    return sa.select(dialect.listed(entry)).select_from(table).where(stamped).scalar_subquery()


class StampsPoll:
    """Poll of one *database*; aggregates are left to others.

    ``late`` counts the rows, since it was set back, that only a look back has found.
    """

    def __init__(self, database: Database, overlap: datetime.timedelta) -> None:
        self._overlap = overlap
        dialect = Dialect(database.dialect_name)
        listings = [_listing(dialect, kind) for kind in _COLUMNS]
        services, nodes = tables.services.c, tables.compute_nodes.c
        flags = [sa.case((each == sa.true(), 1), else_=0) for each in SERVICE_FLAGS]
        said = dialect.joined(*flags, *dialect.texts(services.disabled_reason))
        flagged = dialect.listed(dialect.joined(services.id, dialect.digest(said)))
        is_flagged = sa.or_(*(each == sa.true() for each in SERVICE_FLAGS))
        state = sa.select(flagged).where(*LIVING_SERVICES, is_flagged).scalar_subquery()
        newest = sa.select(sa.func.max(services.id)).scalar_subquery()
        self._query = Compiled(database, sa.select(state, newest, *listings))
        there = sa.select(dialect.listed(dialect.joined(nodes.id))).where(nodes.deleted == 0)
        self._look_query = Compiled(database, sa.select(there.scalar_subquery(), *listings))
        self._read_at = self._looked_at = datetime.datetime.min
        self._flagged: set[str] = set()
        self._newest: set[int] = set()
        #: Entries of the last poll by kind, and those of the last look back and all polls since.
        self._listed: dict[str, set[str]] = {}
        self._known: dict[str, set[str]] = {}
        self._nodes: Set[int] = frozenset()
        self._services: Set[int] = frozenset()
        #: Another thread appends the ids of the living nodes, and entries by kind.
        self._looked: deque[tuple[Set[int], dict[str, set[str]]]] = deque(maxlen=1)
        self.late = 0

    def begin(self, connection: sa.Connection, now: datetime.datetime, services: Set[int]) -> None:
        """Note what is known with a full read of the same snapshot."""
        self._look(connection, now - max(LOOK_BACK, self._overlap))
        self._nodes, self._known = self._looked.popleft()
        self._services = services
        self._looked_at = self._read_at = now
        self.run(connection, now, services)

    def run(self, connection: sa.Connection, now: datetime.datetime, services: Set[int]) -> News:
        """Return what has changed since the last call; *services* are the ids of all."""
        since, self._read_at = self._read_at - self._overlap, now
        found: Any = self._query.execute(connection, since=_literal(since)).one()
        flags, newest = entries_of(found[0]), {found[1] or 0}
        news = {FLAGS: numbers_of(flags ^ self._flagged), MEMBERS: newest - self._newest}
        self._flagged, self._newest = flags, newest
        for kind, text in zip(_COLUMNS, found[2:], strict=True):
            entries = entries_of(text)
            news[kind] = numbers_of(entries - self._listed.get(kind, set()))
            self._listed[kind] = entries
            self._known[kind] |= entries
        self._take_looked(news)
        if services is not self._services:
            news[MEMBERS] |= services ^ self._services
            self._services = services
        return {kind: ids for kind, ids in news.items() if ids}

    def _take_looked(self, news: News) -> None:
        if not self._looked:
            return
        before, (self._nodes, looked) = self._nodes, self._looked.popleft()
        for kind, entries in looked.items():
            late = numbers_of(entries - self._known[kind]) - news[kind]
            self.late += len(late)
            news[kind] |= late
            self._known[kind] = entries | self._listed[kind]
        news[NODES] |= before ^ self._nodes

    def look_back(self, connection: sa.Connection, now: datetime.datetime) -> None:
        """Find what was committed late, if that is due; in another thread than the runs."""
        if not self._looked_at <= now < self._looked_at + LOOK_BACK:
            self._look(connection, min(self._looked_at, now) - LOOK_BACK)
            self._looked_at = now

    def _look(self, connection: sa.Connection, since: datetime.datetime) -> None:
        found: Any = self._look_query.execute(connection, since=_literal(since)).one()
        listed = dict(zip(_COLUMNS, map(entries_of, found[1:]), strict=True))
        self._looked.append((numbers_of(entries_of(found[0])), listed))


def _literal(when: datetime.datetime) -> str:
    return f"'{when.replace(microsecond=0).isoformat(' ')}'"
