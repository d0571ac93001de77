"""Reads of the fleet: everything once, then what changed.

A *poll* of one round trip tells what that is (:mod:`scheduler.db.changed_rows`); the poll and the
rows that it names are read in one snapshot.  Where nothing has been touched for an overlap, a
cheaper poll of timestamps and counters shows that this is still so.  Rows that vanish without a
trace show in counters or counts, and make the read a full one.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from scheduler import objects
from scheduler.db import aggregates as aggregate_rows
from scheduler.db import compute_nodes, fleet_rows, fleet_services, tables
from scheduler.db.changed_rows import SETTLE_SECONDS, Answers, ChangedRows, whole_second
from scheduler.db.database import Database
from scheduler.db.dialects import Dialect
from scheduler.db.fleet_aggregates import AggregateReader
from scheduler.db.fleet_poll import FleetPoll
from scheduler.db.fleet_services import EVERY_SECONDS, HeartbeatReader
from scheduler.db.sessions import ReadSession

#: How far back the first read looks for instances that ended: no claim on them is open by then.
PAST = datetime.timedelta(minutes=10)
#: Rows stamped this recently are listed by every poll, so that one round trip shows them.
RECENT = datetime.timedelta(seconds=SETTLE_SECONDS)


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

    *metadata_prefix* makes it read the instances' system metadata with such keys, too.  *cell* is
    the one that the database belongs to, if there are several.  Without *aggregates* it leaves
    them to other readers.  *clock* never goes back.  Heartbeats are read every
    *heartbeat_seconds*; 0: by every read, and before it ends.
    """

    def __init__(
        self,
        database: Database,
        overlap: datetime.timedelta,
        metadata_prefix: str | None = None,
        cell: Cell | None = None,
        *,
        aggregates: bool = True,
        clock: Callable[[], float] = time.monotonic,
        heartbeat_seconds: float = EVERY_SECONDS,
    ) -> None:
        self.database = database
        self.cell = cell
        self.overlap = overlap
        self.metadata_prefix = metadata_prefix
        self._clock = clock
        self._session = ReadSession(database)
        dialect = Dialect(database.dialect_name)
        self._nodes = ChangedRows(dialect, tables.compute_nodes, fleet_rows.NODE_COLUMNS)
        self._instances = ChangedRows(dialect, tables.instances, fleet_rows.INSTANCE_COLUMNS)
        self._heartbeats = HeartbeatReader(database, overlap, heartbeat_seconds)
        self._aggregates = AggregateReader(database) if aggregates else None
        self._poll: FleetPoll | None = None
        self._vanished: tuple[Any, ...] | None = None
        self._living: set[int] = set()
        #: When the last read began; None: none yet, or it failed, so the next one is full.
        self._read_at: datetime.datetime | None = None

    @classmethod
    def from_conf(
        cls, conf: Any, database: Database, cell: Cell | None = None, **more: Any
    ) -> FleetReader:
        """A reader of *database* with the overlap that is configured, and *more* arguments.

        It reads the properties of instances' images only for a weigher that needs them.
        """
        overlap = datetime.timedelta(seconds=conf.scheduler.refresh_overlap_seconds)
        return cls(database, overlap, fleet_rows.metadata_prefix_for(conf), cell, **more)

    def read_more(self, conf: Any) -> bool:
        """Read what *conf* needs, too, from the next full read on; whether that is anything."""
        wanted = fleet_rows.metadata_prefix_for(conf)
        if wanted in (None, self.metadata_prefix):
            return False
        self.metadata_prefix = wanted
        return True

    def services(self, topic: str) -> Sequence[Any]:
        """The service rows of *topic*, whatever their state, by id."""
        with self.database.read() as connection:
            return fleet_services.of_topic(connection, topic)

    def group_hosts(self, group: str) -> Sequence[str]:
        """The host of each living instance whose system metadata names *group*, if it has one."""
        with self.database.read() as connection:
            return fleet_rows.hosts_of_group(connection, group)

    def close(self) -> None:
        """Give the connections up; the next read opens others."""
        self._session.close()
        self._heartbeats.close()

    def read(self, now: datetime.datetime, *, full: bool = False) -> Sequence[FleetChanges]:
        """The changes since the last read (*now*: naive UTC), or everything.

        Raises oslo.db's errors when the database does not answer; after that, the next read is a
        full one.
        """
        full = full or self._read_at is None
        if not full:
            quiet = self._session.run(lambda connection: self._read_if_quiet(connection, now))
            if quiet is not None:
                return [quiet]
        # First: they are older than the rest, and nothing of the rest is lost where they fail.
        heartbeats = () if full else self._heartbeats.read(now)
        changes = self._session.run(lambda connection: self._read(connection, now, full=full))
        return [dataclasses.replace(changes, heartbeats=heartbeats)]

    def _since(self, now: datetime.datetime) -> int:
        return whole_second((self._read_at or now) - self.overlap)

    def _read_if_quiet(
        self, connection: sa.Connection, now: datetime.datetime
    ) -> FleetChanges | None:
        """No rows but heartbeats, if the cheap poll shows that nothing else has changed."""
        since, poll = self._since(now), self._poll
        if poll is None or not (self._nodes.is_quiet(since) and self._instances.is_quiet(since)):
            return None
        newest_heartbeat = poll.quiet(connection, since)
        if newest_heartbeat is None:
            return None
        self._read_at = now
        heartbeats = self._heartbeats.read(now, newest_heartbeat)
        return FleetChanges(
            False, now, heartbeats=heartbeats, flagged=poll.services.flagged, cell=self.cell
        )

    def _read(
        self, connection: sa.Connection, now: datetime.datetime, *, full: bool
    ) -> FleetChanges:
        """The poll, and the rows that it names, in one snapshot.

        Rows read later than the poll may be fuller than it has shown, while other hosts, emptied
        since, are not read: together a state that never was, and perhaps without room.
        """
        if self._poll is None:
            self._poll = FleetPoll(
                self.database,
                fleet_rows.counters(connection),
                (self._nodes, self._instances),
                self._aggregates,
                self._heartbeats,
            )
        with self._session.snapshot():
            return self._read_snapshot(connection, self._poll, now, full=full)

    def _read_snapshot(
        self, connection: sa.Connection, poll: FleetPoll, now: datetime.datetime, *, full: bool
    ) -> FleetChanges:
        since, last_read_at = self._since(now), self._read_at
        # The poll does not show a row twice: until its rows are read, only a full read can follow.
        self._read_at = None
        listed_from = since if full else max(since, whole_second(now - RECENT))
        answers, (nodes, instances) = poll.run(connection, since, listed_from, self._clock())
        vanished_before, self._vanished = self._vanished, poll.vanished(answers)
        if full:
            self._heartbeats.begin(connection, now)
        services = poll.services.read(connection, answers, full=full)
        aggregates_changed = self._aggregates is not None and self._aggregates.have_changed(answers)
        changes = None
        if not full and self._vanished == vanished_before:
            changes = self._changed(connection, now, answers, instances, nodes)
        is_full = changes is None
        if changes is None:
            services = fleet_services.living(connection) if services is None else services
            late = (last_read_at or now - PAST) - self.overlap
            changes = self._everything(connection, now, late)
        if (is_full or aggregates_changed) and self._aggregates is not None:
            found = aggregate_rows.list_all(connection)
            changes = dataclasses.replace(changes, aggregates=found)
        if not is_full:
            self._read_at = now
        return dataclasses.replace(
            changes, services=services, flagged=poll.services.flagged, cell=self.cell
        )

    def _changed(
        self,
        connection: sa.Connection,
        now: datetime.datetime,
        answers: Answers,
        instance_ids: set[int],
        node_ids: set[int],
    ) -> FleetChanges | None:
        """The changed rows; None if some cannot be found any more.

        The instances come first: a node that reports one is not read before it.
        """
        instances = self._rows(
            connection, self._instances, fleet_rows.INSTANCE_COLUMNS, instance_ids
        )
        metadata: dict[str, dict[str, str | None]] = {}
        for some in fleet_rows.chunks(instance_ids):
            condition = tables.instances.c.id.in_(some)
            metadata |= fleet_rows.metadata_where(connection, self.metadata_prefix, condition)
        nodes = self._rows(connection, self._nodes, fleet_rows.NODE_COLUMNS, node_ids)
        if instances is None or nodes is None:
            return None
        if self._vanished is None:
            for row in nodes:
                (self._living.discard if row.deleted else self._living.add)(row.id)
            if len(self._living) != answers["living"]:
                return None
        # An instance may be newer than its host's timestamp says, and the host counts it already.
        homes = {(row.host, row.node) for row in instances if row.host and not row.deleted}
        homes.difference_update((row.host, row.hypervisor_hostname) for row in nodes)
        nodes.extend(compute_nodes.living_rows(connection, homes))
        return FleetChanges(
            full=False,
            read_at=now,
            nodes=nodes,
            instances=instances,
            system_metadata=metadata,
        )

    def _everything(
        self, connection: sa.Connection, now: datetime.datetime, late: datetime.datetime
    ) -> FleetChanges:
        """All that lives, and the instances on no host that were touched since *late*.

        Claims on these may be open.
        """
        elsewhere = fleet_rows.instances(connection, fleet_rows.on_no_host(late))
        present = fleet_rows.instances(connection, fleet_rows.PLACED)
        placed = fleet_rows.PLACED
        nodes: Iterable[Any] = self._all_nodes(now)
        if self.cell is not None:
            nodes = list(nodes)  # a cell that fails must do so here, where it can be left out
        return FleetChanges(
            full=True,
            read_at=now,
            nodes=nodes,
            instances=[*elsewhere, *present],
            system_metadata=fleet_rows.metadata_where(connection, self.metadata_prefix, placed),
        )

    def _all_nodes(self, now: datetime.datetime) -> Iterator[Any]:
        """Every living node by id, fetched in chunks; only after the last one the read is done."""
        self._living = set()
        last = 0
        with self._session.snapshot():
            while True:
                chunk = self._session.run(functools.partial(fleet_rows.nodes_after, last=last))
                yield from chunk
                if self._vanished is None:
                    self._living.update(row.id for row in chunk)
                if len(chunk) < fleet_rows.CHUNK:
                    break
                last = chunk[-1].id
        self._read_at = now

    @staticmethod
    def _rows(
        connection: sa.Connection,
        changed: ChangedRows,
        columns: Sequence[sa.ColumnElement[Any]],
        ids: set[int],
    ) -> list[Any] | None:
        found = fleet_rows.by_ids(connection, columns, ids)
        missing = ids.difference(row.id for row in found) if len(found) < len(ids) else ()
        return None if any(not changed.is_known_deleted(each) for each in missing) else found
