"""Reading the compute services: who there is, who is switched off, who was heard from."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa

from scheduler.db import change_counters, tables
from scheduler.db.fleet_heartbeats import EVERY_SECONDS, LIVING, HeartbeatReader
from scheduler.db.fleet_windows import Answers, Question
from scheduler.db.fragments import Fragments

_TABLE = tables.services
_SWITCHED_OFF = (
    *LIVING,
    sa.or_(_TABLE.c.disabled == sa.true(), _TABLE.c.forced_down == sa.true()),
)


class ServiceReader:
    """The compute services of one database, read over connections that are given.

    Heartbeats touch every row all the time, so they are looked for only when they are due; that a
    service came or went, or was switched off or on, shows at every read.
    """

    def __init__(
        self,
        dialect_name: str,
        overlap: datetime.timedelta,
        clock: Callable[[], float],
        heartbeat_seconds: float = EVERY_SECONDS,
    ) -> None:
        self._sql = Fragments(dialect_name)
        self.heartbeats = HeartbeatReader(dialect_name, overlap, clock, heartbeat_seconds)
        self._names: tuple[str, ...] = ()
        self._seen: tuple[Any, ...] | None = None
        self._switched_off: frozenset[str] | None = None
        #: The two flags of each host that is switched off, as of the last read.
        self.flagged: dict[str, tuple[bool, bool]] = {}

    def questions(self, *, counted: bool) -> dict[str, Question]:
        """By name what is asked at every read; *counted*: triggers count who comes and goes."""
        if counted:
            membership = {"services": change_counters.question("services")}
        else:
            membership = {
                "services_living": sa.select(sa.func.count()).where(*LIVING).scalar_subquery(),
                "services_newest": sa.select(sa.func.max(_TABLE.c.id))
                .where(*LIVING)
                .scalar_subquery(),
            }
        self._names = tuple(membership)
        row = self._sql.joined(
            _TABLE.c.id,
            _flag(_TABLE.c.disabled),
            _flag(_TABLE.c.forced_down),
        )
        text = sa.select(sa.func.aggregate_strings(row, ",")).where(*_SWITCHED_OFF)
        return {**membership, "switched_off": text.scalar_subquery()}

    def read(
        self,
        connection: sa.Connection,
        answers: Answers,
        now: datetime.datetime,
        *,
        full: bool,
    ) -> dict[str, Any]:
        """The fields ``services``, ``heartbeats`` and ``flagged`` of the changes."""
        membership = tuple(answers[name] for name in self._names)
        changed, self._seen = full or membership != self._seen, membership
        switched_off = frozenset((answers["switched_off"] or "").split(","))
        beats: Sequence[Any] = ()
        if full:
            self.heartbeats.begin(connection, now)
        else:
            beats = self.heartbeats.read(connection, now)
        if changed or switched_off != self._switched_off:
            self.flagged, self._switched_off = _flagged(connection), switched_off
        services = living(connection) if changed else None
        return {
            "services": services,
            "heartbeats": beats,
            "flagged": self.flagged,
        }


def living(connection: sa.Connection) -> Sequence[Any]:
    """Every living compute service by id."""
    return connection.execute(sa.select(*_TABLE.c).where(*LIVING).order_by(_TABLE.c.id)).all()


def of_topic(connection: sa.Connection, topic: str) -> Sequence[Any]:
    """Every living service of *topic*, whatever its state, by id."""
    query = sa.select(*_TABLE.c).where(_TABLE.c.topic == topic, _TABLE.c.deleted == 0)
    return connection.execute(query.order_by(_TABLE.c.id)).all()


def _flag(column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    return sa.case((column == sa.true(), 1), else_=0)


def _flagged(connection: sa.Connection) -> dict[str, tuple[bool, bool]]:
    query = sa.select(_TABLE.c.host, _TABLE.c.disabled, _TABLE.c.forced_down).where(*_SWITCHED_OFF)
    return {
        row.host: (bool(row.disabled), bool(row.forced_down)) for row in connection.execute(query)
    }
