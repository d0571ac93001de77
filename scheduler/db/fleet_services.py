"""Reads of the compute services: membership, flags, heartbeats.

Heartbeats touch every row all the time.  Membership and flags are part of every poll of the fleet;
heartbeats are read once a second, in a thread of their own.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from scheduler.db import fleet_rows, tables
from scheduler.db.changed_rows import Answers, Query, whole_second
from scheduler.db.database import FAILURES, Database
from scheduler.db.dialects import Compiled, Dialect
from scheduler.db.rows import in_batches
from scheduler.db.services import COMPUTE_BINARY
from scheduler.db.sessions import ReadSession, ThreadCall

#: Heartbeats tolerate ``service_down_time``, so reading them this often is enough.
EVERY_SECONDS = 1.0
#: Heartbeats read longer ago than this are read before the request goes on.
LATE_SECONDS = 5.0

_TABLE = tables.services
LIVING = (_TABLE.c.binary == COMPUTE_BINARY, _TABLE.c.deleted == 0)
"""Criteria of the services of compute hosts that are not deleted."""
_FLAGGED = (
    *LIVING,
    sa.or_(_TABLE.c.disabled == sa.true(), _TABLE.c.forced_down == sa.true()),
)


class ServiceReader:
    """Membership and flags of the compute services of one database."""

    def __init__(self, dialect: Dialect, *, counted: bool) -> None:
        """*counted*: triggers count the services that come, go or are renamed."""
        self._counted = counted
        self._dialect = dialect
        self._membership: tuple[Any, ...] | None = None
        self._flagged_ids: str | None = None
        #: Both flags of each host that is disabled or forced down, as of the last poll.
        self.flagged: dict[str, tuple[bool, bool]] = {}

    def queries(self) -> dict[str, Query]:
        """By name the subqueries of a poll."""
        if self._counted:
            membership = {"services": fleet_rows.counter("services")}
        else:
            living = sa.select(sa.func.count()).where(*LIVING)
            newest = sa.select(sa.func.max(_TABLE.c.id)).where(*LIVING)
            membership = {
                "services": living.scalar_subquery(),
                "services_newest": newest.scalar_subquery(),
            }
        row = self._dialect.joined(
            _TABLE.c.id, _as_int(_TABLE.c.disabled), _as_int(_TABLE.c.forced_down)
        )
        flagged = sa.select(self._dialect.listed(row)).where(*_FLAGGED)
        return {**membership, "services_flagged": flagged.scalar_subquery()}

    def read(
        self, connection: sa.Connection, answers: Answers, *, full: bool
    ) -> Sequence[Any] | None:
        """All services if one came or went, or *full*; brings ``flagged`` up to date."""
        membership = (answers["services"], answers.get("services_newest"))
        changed, self._membership = full or membership != self._membership, membership
        # The engine may list the same rows in another order: at worst they are read once more.
        flagged_ids = answers["services_flagged"] or ""
        if changed or flagged_ids != self._flagged_ids:
            self.flagged, self._flagged_ids = _flagged(connection), flagged_ids
        return living(connection) if changed else None


class HeartbeatReader:
    """The heartbeats of one *database*, read every *every_seconds*.

    What is compared is a version of each service: 10,000 take the server some 25 ms and this
    process 3 ms, besides the rows of the services that were heard from.
    """

    def __init__(
        self, database: Database, overlap: datetime.timedelta, every_seconds: float = EVERY_SECONDS
    ) -> None:
        self._session = ReadSession(database)
        self._overlap = overlap
        self._every_seconds = every_seconds
        dialect = Dialect(database.dialect_name)
        text = dialect.joined(_TABLE.c.id, dialect.version(_TABLE, list(_TABLE.c)))
        self._versions_query = Compiled(database, sa.select(dialect.listed(text)).where(*LIVING))
        self._versions: set[str] = set()
        self._read_at: datetime.datetime | None = None
        self._call: ThreadCall | None = None

    def newest(self, dialect: Dialect) -> sa.ColumnElement[int]:
        """The second of the latest heartbeat of all, or 0."""
        latest = sa.select(dialect.second(sa.func.max(_TABLE.c.updated_at)))
        return sa.func.coalesce(latest.scalar_subquery(), 0)

    def close(self) -> None:
        """Give the connection up; the next read opens another."""
        self._session.close()

    def begin(self, connection: sa.Connection, now: datetime.datetime) -> None:
        """Note the versions there are, before all services are read."""
        if self._call is None:  # else its rows are still to come
            self._versions = self._current(connection)
        self._read_at = now

    def read(self, now: datetime.datetime, newest: int | None = None) -> Sequence[Any]:
        """The services heard from since the last call, as far as they have been read.

        *newest* is the second of the latest heartbeat, where the poll has asked for it.  Raises
        oslo.db's errors when the database does not answer.
        """
        found: Sequence[Any] = ()
        if self._call is not None and self._call.is_done:
            call, self._call = self._call, None
            try:
                found = call.result(0)
            except FAILURES:
                self._read_at = None  # is tried again now, and raised by that
        since = None if self._read_at is None else self._read_at - self._overlap
        if newest is not None and since is not None and newest < whole_second(since):
            self._read_at = now
        age = self._age_seconds(now)
        if self._call is not None or age < self._every_seconds:
            return found
        if age >= LATE_SECONDS or not self._every_seconds:
            found = [*found, *self._session.run(self._changed)]
        else:
            self._call = ThreadCall(lambda: self._session.run(self._changed))
        self._read_at = now
        return found

    def _age_seconds(self, now: datetime.datetime) -> float:
        """Infinite where nothing was read yet, and where the clock was set back."""
        age = float("inf") if self._read_at is None else (now - self._read_at).total_seconds()
        return age if age >= 0 else float("inf")

    def _changed(self, connection: sa.Connection) -> list[Any]:
        versions = self._current(connection)
        ids = sorted(int(each.partition(":")[0]) for each in versions - self._versions)
        found: list[Any] = []
        for some in in_batches(ids):
            query = sa.select(*_TABLE.c).where(_TABLE.c.id.in_(some), *LIVING)
            found.extend(connection.execute(query))
        self._versions = versions
        return found

    def _current(self, connection: sa.Connection) -> set[str]:
        text = self._versions_query.execute(connection).scalar()
        return set(text.split(",")) if text else set()


def living(connection: sa.Connection) -> Sequence[Any]:
    """Every living compute service by id."""
    return connection.execute(sa.select(*_TABLE.c).where(*LIVING).order_by(_TABLE.c.id)).all()


def of_topic(connection: sa.Connection, topic: str) -> Sequence[Any]:
    """Every living service of *topic*, whatever its state, by id."""
    query = sa.select(*_TABLE.c).where(_TABLE.c.topic == topic, _TABLE.c.deleted == 0)
    return connection.execute(query.order_by(_TABLE.c.id)).all()


def _as_int(column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    return sa.case((column == sa.true(), 1), else_=0)


def _flagged(connection: sa.Connection) -> dict[str, tuple[bool, bool]]:
    query = sa.select(_TABLE.c.host, _TABLE.c.disabled, _TABLE.c.forced_down).where(*_FLAGGED)
    return {
        row.host: (bool(row.disabled), bool(row.forced_down)) for row in connection.execute(query)
    }
