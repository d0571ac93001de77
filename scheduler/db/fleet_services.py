"""Reading the compute services: who there is, who is switched off, who was heard from."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa

from scheduler.db import change_counters, tables
from scheduler.db.fleet_windows import (
    EPOCH,
    FRESH,
    Answers,
    Fragments,
    Question,
    TouchedRows,
    whole_second,
)

COMPUTE_BINARY = "nova-compute"
_TABLE = tables.services
_LIVING = (_TABLE.c.binary == COMPUTE_BINARY, _TABLE.c.deleted == 0)
_SWITCHED_OFF = (
    *_LIVING,
    sa.or_(_TABLE.c.disabled == sa.true(), _TABLE.c.forced_down == sa.true()),
)
_CHUNK = 500


class ServiceReader:
    """The compute services of one database, read over connections that are given.

    Heartbeats touch every row all the time, so they are looked for only when asked for; that a
    service came or went, or was switched off or on, shows at every read.
    """

    def __init__(
        self, dialect_name: str, overlap: datetime.timedelta, clock: Callable[[], float]
    ) -> None:
        self._clock = clock
        self.overlap = overlap
        self._sql = Fragments(dialect_name)
        self.touched = TouchedRows(dialect_name, _TABLE, list(_TABLE.c), ("updated_at",))
        self._beats = sa.select(
            *(each.label(name) for name, each in self.touched.questions().items())
        )
        self._beats_at: datetime.datetime | None = None
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
                "services_living": sa.select(sa.func.count()).where(*_LIVING).scalar_subquery(),
                "services_newest": sa.select(sa.func.max(_TABLE.c.id))
                .where(*_LIVING)
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
        heartbeats: bool,
    ) -> dict[str, Any]:
        """The fields ``services``, ``heartbeats`` and ``flagged`` of the changes."""
        membership = tuple(answers[name] for name in self._names)
        changed, self._seen = full or membership != self._seen, membership
        switched_off = frozenset((answers["switched_off"] or "").split(","))
        beats = self._heartbeats(connection, now, full=full) if heartbeats or full else ()
        if changed or switched_off != self._switched_off:
            self.flagged, self._switched_off = _flagged(connection), switched_off
        services = living(connection) if changed else None
        return {
            "services": services,
            "heartbeats": () if full else beats,
            "flagged": self.flagged,
        }

    @property
    def heard_since(self) -> int:
        """The second from which on heartbeats are looked for; 0 before they were first read."""
        return 0 if self._beats_at is None else whole_second(self._beats_at - self.overlap)

    def heard_nothing(self, now: datetime.datetime) -> None:
        """There were no heartbeats until *now*."""
        self._beats_at = now

    def _heartbeats(
        self, connection: sa.Connection, now: datetime.datetime, *, full: bool
    ) -> Sequence[Any]:
        clock = self._clock()
        full = full or self._beats_at is None
        since = whole_second((self._beats_at or now) - self.overlap)
        fresh = since if full else max(since, whole_second(now - FRESH))
        parameters = {
            "since": EPOCH + datetime.timedelta(seconds=since),
            "fresh": EPOCH + datetime.timedelta(seconds=fresh),
            **self.touched.parameters(fresh),
        }
        self._beats_at = None
        answers = connection.execute(self._beats, parameters).one()._mapping
        ids = self.touched.news(answers, since, fresh, clock)
        differing = self.touched.differing(answers, since)
        if differing:
            ids |= self.touched.look_closer(connection, differing, clock)
        found: list[Any] = []
        if not full:
            ordered = sorted(ids)
            for start in range(0, len(ordered), _CHUNK):
                some = ordered[start : start + _CHUNK]
                query = sa.select(*_TABLE.c).where(_TABLE.c.id.in_(some), *_LIVING)
                found.extend(connection.execute(query))
        self._beats_at = now
        return found


def living(connection: sa.Connection) -> Sequence[Any]:
    """Every living compute service by id."""
    return connection.execute(sa.select(*_TABLE.c).where(*_LIVING).order_by(_TABLE.c.id)).all()


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
