"""Reads of the fleet: everything once, then what changed.

A poll tells what that is (:mod:`scheduler.db.fleet_poll`); the poll and the rows that it names are
read in one snapshot.  After a poll that found nothing, the next one is tried without a snapshot:
one round trip shows that nothing has changed.  Rows that vanish without a trace show in counters
or counts, and make the read a full one.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from scheduler import objects
from scheduler.db import aggregates as aggregate_rows
from scheduler.db import compute_nodes, fleet_rows, rows, tables
from scheduler.db.database import Database
from scheduler.db.fleet_poll import (
    SETTLE_SECONDS,
    Answers,
    ChangedRows,
    Dialect,
    FleetPoll,
    whole_second,
)
from scheduler.db.fleet_rows import EVERY_SECONDS, FLAGS, MEMBERS, HeartbeatReader
from scheduler.db.sessions import ReadSession

#: The first read looks so far back for ended instances: no claim on older ones is open by then.
PAST = datetime.timedelta(minutes=10)
#: Rows stamped this recently are listed by every poll, so that one round trip shows them.
RECENT = datetime.timedelta(seconds=SETTLE_SECONDS)


Rows = tuple[Iterable[Any], Sequence[Any], Mapping[str, Mapping[str, str | None]]]
"""Nodes, instances, and the system metadata of these."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell that rows are of.  *number* keeps the ids of its rows apart from other cells'.

    The hosts of a *disabled* cell are there for requests that ask for that very cell.
    """

    uuid: str
    number: int = 0
    disabled: bool = False


@dataclass(frozen=True, slots=True)
class FleetChanges:
    """Result of one read of one cell.  Rows have their table's column names as attributes.

    *full*: ``nodes``, ``services`` and ``instances`` are everything that lives in the cell, and
    whatever is not among them is gone; instances that ended lately are included.
    Otherwise they are changed rows, deleted ones included.
    ``nodes`` come by id and can be iterated once: a full read fetches them meanwhile.
    ``flagged`` maps every disabled or forced-down compute host of the cell to its two flags.
    ``heartbeats`` are services read up to a few seconds ago; the other fields are newer.
    ``services`` and ``aggregates``, which are those of all cells, are None where nothing changed.
    ``cell`` is None where the fleet is not divided into cells.
    ``system_metadata`` maps instances to theirs, as far as the reader was asked for it.
    """

    full: bool
    read_at: datetime.datetime
    nodes: Iterable[Any] = ()
    instances: Sequence[Any] = ()
    services: Sequence[Any] | None = None
    heartbeats: Sequence[Any] = ()
    flagged: dict[str, tuple[bool, bool]] = field(default_factory=dict)
    aggregates: Sequence[objects.Aggregate] | None = None
    cell: Cell | None = None
    system_metadata: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)


class FleetReader:
    """Reads of one database by one worker; remembers how far it got.

    *cell* is the one that the database belongs to, if there are several.  Without *aggregates* it
    leaves them to other readers.  *clock* never goes back.  Heartbeats are read every
    *heartbeat_seconds*; 0: by every read, and before it ends.
    """

    def __init__(
        self,
        database: Database,
        overlap: datetime.timedelta,
        cell: Cell | None = None,
        *,
        aggregates: bool = True,
        clock: Callable[[], float] = time.monotonic,
        heartbeat_seconds: float = EVERY_SECONDS,
    ) -> None:
        self.database = database
        self.cell = cell
        self.overlap = overlap
        self._clock = clock
        self._session = ReadSession(database)
        self._dialect = dialect = Dialect(database.dialect_name)
        self._nodes = ChangedRows(dialect, tables.compute_nodes, fleet_rows.NODE_COLUMNS)
        self._instances = ChangedRows(dialect, tables.instances, fleet_rows.INSTANCE_COLUMNS)
        self._heartbeats = HeartbeatReader(database, heartbeat_seconds)
        self._reads_aggregates, self._reads_images = aggregates, False
        #: Made by the first read, when it is known what triggers count.
        self._poll: FleetPoll | None = None
        self._counters: list[str] = []
        self._aggregate_names: Collection[str] = ()
        #: Answers of the last poll; *quiet*: it found no changed rows.
        self._answers: Answers = {}
        self._is_quiet = False
        self._flagged: dict[str, tuple[bool, bool]] = {}
        self._living: set[int] = set()
        #: When the last read began; None: none yet, or it failed, so the next one is full.
        self._read_at: datetime.datetime | None = None

    def services(self, topic: str) -> Sequence[Any]:
        """The service rows of *topic*, whatever their state, by id."""
        with self.database.read() as connection:
            return fleet_rows.of_topic(connection, topic)

    def close(self) -> None:
        """Give the connections up; the next read opens others."""
        self._session.close()
        self._heartbeats.close()

    def read(
        self, now: datetime.datetime, *, full: bool = False, image_properties: bool = False
    ) -> Sequence[FleetChanges]:
        """The changes since the last read (*now*: naive UTC), or everything.

        With *image_properties* those of the instances' images are part of the system metadata.
        Raises oslo.db's errors when the database does not answer; after that, the next read is a
        full one.
        """
        # First: they are older than the rest, and nothing of the rest is lost where they fail.
        heartbeats = () if full or self._read_at is None else self._heartbeats.read(now)
        self._reads_images = image_properties
        changes = self._session.run(lambda connection: self._read(connection, now, full=full))
        return [dataclasses.replace(changes, heartbeats=heartbeats)]

    def _read(
        self, connection: sa.Connection, now: datetime.datetime, *, full: bool
    ) -> FleetChanges:
        """The poll, and the rows that it names, in one snapshot.

        Rows read later than the poll may be fuller than it has shown, while other hosts, emptied
        since, are not read: together a state that never was, and perhaps without room.
        """
        full = full or self._read_at is None
        poll = self._poll = self._poll or self._make_poll(connection)
        since = whole_second((self._read_at or now) - self.overlap)
        recent = since if full else max(since, whole_second(now - RECENT))
        # The poll does not show a row twice: until its rows are read, only a full read can follow.
        last_read_at, self._read_at = self._read_at, None
        known: list[set[int]] = [set(), set()]
        if self._is_quiet and not full:
            answers, known = poll.run(connection, since, recent, self._clock())
            if not any(known) and answers == self._answers:
                self._read_at = now
                return FleetChanges(False, now, flagged=self._flagged, cell=self.cell)
        with self._session.snapshot():
            answers, found = poll.run(connection, since, recent, self._clock())
            ids = [before | new for before, new in zip(known, found, strict=True)]
            news = {name for name in answers if answers[name] != self._answers.get(name)}
            self._answers, self._is_quiet = answers, not any(ids)
            changed = None
            if not full and news.isdisjoint(self._counters):
                changed = self._changed(connection, *ids)
            if full:
                self._heartbeats.begin(connection, now)
            late = (last_read_at or now - PAST) - self.overlap
            return self._result(connection, now, news, changed, late)

    def _make_poll(self, connection: sa.Connection) -> FleetPoll:
        counters = fleet_rows.counters(connection)
        state = fleet_rows.service_queries(self._dialect, counted="services" in counters)
        if self._reads_aggregates:
            counted = "aggregates" in counters
            of_aggregates = fleet_rows.aggregate_queries(self._dialect, counted=counted)
            self._aggregate_names = of_aggregates.keys()
            state |= of_aggregates
        names = [tables.compute_nodes.name, tables.instances.name]
        self._counters = names if counters.issuperset(names) else []
        state |= {name: fleet_rows.counter(name) for name in self._counters}
        if not self._counters:
            living = sa.select(sa.func.count()).where(tables.compute_nodes.c.deleted == 0)
            state["living"] = living.scalar_subquery()
        return FleetPoll(self.database, state, (self._nodes, self._instances))

    def _result(
        self,
        connection: sa.Connection,
        now: datetime.datetime,
        news: set[str],
        changed: Rows | None,
        late: datetime.datetime,
    ) -> FleetChanges:
        """The *changed* rows, or everything, and what else is among the *news* of the poll."""
        is_full = changed is None
        services, aggregates = None, None
        if is_full or not news.isdisjoint(MEMBERS):
            services = fleet_rows.living(connection)
        if services is not None or FLAGS in news:
            self._flagged = fleet_rows.flagged_hosts(connection)
        if self._reads_aggregates and (is_full or not news.isdisjoint(self._aggregate_names)):
            aggregates = aggregate_rows.list_all(connection)
        if changed is None:
            nodes, instances, metadata = self._everything(connection, now, late)
        else:
            nodes, instances, metadata = changed
            self._read_at = now
        return FleetChanges(
            is_full,
            now,
            nodes,
            instances,
            services,
            flagged=self._flagged,
            aggregates=aggregates,
            cell=self.cell,
            system_metadata=metadata,
        )

    def _changed(
        self, connection: sa.Connection, node_ids: set[int], instance_ids: set[int]
    ) -> Rows | None:
        """The changed rows; None if some cannot be found any more.

        The instances come first: a node that reports one is not read before it.
        """
        found: list[list[Any]] = []
        for changed, ids in ((self._instances, instance_ids), (self._nodes, node_ids)):
            found.append(fleet_rows.by_ids(connection, changed.columns, ids))
            missing = ids.difference(row.id for row in found[-1])
            if not all(map(changed.is_known_deleted, missing)):
                return None
        instances, nodes = found
        metadata: dict[str, dict[str, str | None]] = {}
        for some in rows.in_batches(sorted(instance_ids)) if self._reads_images else ():
            metadata |= fleet_rows.image_properties(connection, tables.instances.c.id.in_(some))
        if not self._counters:
            for row in nodes:
                (self._living.discard if row.deleted else self._living.add)(row.id)
            if len(self._living) != self._answers["living"]:
                return None
        # An instance may be newer than its host's timestamp says, and the host counts it already.
        homes = {(row.host, row.node) for row in instances if row.host and not row.deleted}
        homes.difference_update((row.host, row.hypervisor_hostname) for row in nodes)
        nodes.extend(compute_nodes.living_rows(connection, homes))
        return nodes, instances, metadata

    def _everything(
        self, connection: sa.Connection, now: datetime.datetime, late: datetime.datetime
    ) -> Rows:
        """All that lives, and the instances on no host that were touched since *late*.

        Claims on these may be open.
        """
        placed = fleet_rows.PLACED
        elsewhere = fleet_rows.instances(connection, fleet_rows.on_no_host(late))
        present = fleet_rows.instances(connection, placed)
        nodes: Iterable[Any] = self._all_nodes(now)
        if self.cell is not None:
            nodes = list(nodes)  # a cell that fails must do so here, where it can be left out
        metadata = fleet_rows.image_properties(connection, placed) if self._reads_images else {}
        return nodes, [*elsewhere, *present], metadata

    def _all_nodes(self, now: datetime.datetime) -> Iterator[Any]:
        """Every living node by id, fetched in chunks; only after the last one the read is done."""
        self._living = set()
        last = 0
        with self._session.snapshot():
            while True:
                chunk = self._session.run(functools.partial(fleet_rows.nodes_after, last=last))
                yield from chunk
                if not self._counters:
                    self._living.update(row.id for row in chunk)
                if len(chunk) < fleet_rows.CHUNK:
                    break
                last = chunk[-1].id
        self._read_at = now
