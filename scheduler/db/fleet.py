"""Reads of the fleet: everything once, then what changed.

A poll tells what that is (:mod:`scheduler.db.fleet_poll`); the poll and the rows that it names are
read in one snapshot.  After a poll that found nothing, the next one is tried without a snapshot:
one round trip shows that nothing has changed.  Rows that vanish make the read a full one.
"""

import dataclasses
import datetime
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from scheduler import objects
from scheduler.db import aggregates as aggregate_rows
from scheduler.db import compute_nodes, fleet_poll, fleet_rows, rows, tables
from scheduler.db.database import Database
from scheduler.db.fleet_rows import AGGREGATES, FLAGS, INSTANCES, MEMBERS, NODES, News, RowReader
from scheduler.db.heartbeats import HEARTBEAT_SECONDS, LATE_SECONDS, HeartbeatReader, Heartbeats
from scheduler.db.sessions import ReadSession

#: The first read looks so far back for ended instances: no claim on older ones is open by then.
PAST = datetime.timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class FleetChanges:
    """Result of one read of one cell.  Rows have their table's column names as attributes.

    *full*: ``nodes``, ``services`` and ``instances`` are everything that lives in the cell, and
    whatever is not among them is gone; instances that ended lately are included.
    Otherwise they are changed rows, deleted ones included.
    ``nodes`` come by id and can be iterated once: a full read fetches them meanwhile.
    ``services`` are all of the cell, None where none came or went; ``changed_services`` are those
    of which more than ``heartbeats`` has changed.
    ``aggregates``, which are those of all cells, are None where nothing changed.
    ``cell`` is None where the fleet is not divided into cells.
    ``system_metadata`` maps instances to theirs, as far as the reader was asked for it.
    ``late_rows`` of the changed ones were committed so late that a look back had to find them.
    """

    full: bool
    nodes: Iterable[Any] = ()
    instances: Sequence[Any] = ()
    services: Sequence[Any] | None = None
    changed_services: Sequence[Any] = ()
    heartbeats: Heartbeats = field(default_factory=dict)
    aggregates: Sequence[objects.Aggregate] | None = None
    cell: objects.CellMapping | None = None
    system_metadata: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    late_rows: int = 0


class FleetReader:
    """Reads of one database by one worker; remembers how far it got.

    *cell* is the one that the database belongs to, if there are several.  Without *aggregates* it
    leaves them to other readers.
    """

    def __init__(
        self,
        database: Database,
        overlap: datetime.timedelta,
        cell: objects.CellMapping | None = None,
        *,
        aggregates: bool = True,
    ) -> None:
        self.database = database
        self.cell = cell
        self._overlap = overlap
        self._session = ReadSession(database)
        self._heartbeats = HeartbeatReader(database)
        self._nodes = RowReader(database, fleet_rows.NODE_COLUMNS)
        self._instances = RowReader(database, fleet_rows.INSTANCE_COLUMNS)
        self._reads_aggregates, self._reads_images = aggregates, False
        #: Chosen by every full read, when it is known whether there are triggers.
        self._poll: fleet_poll.ChangesPoll | fleet_poll.StampsPoll = fleet_poll.StampsPoll(
            database, overlap
        )
        self._has_begun = False
        #: True when the last poll found nothing.
        self._is_quiet = False
        #: When the last read began; None: none yet, or it failed, so the next one is full.
        self._read_at: datetime.datetime | None = None

    @property
    def finds_aggregates(self) -> bool:
        """True when the last reads found changes of aggregates, too."""
        return self._reads_aggregates and isinstance(self._poll, fleet_poll.ChangesPoll)

    def read(
        self, now: datetime.datetime, *, full: bool = False, image_properties: bool = False
    ) -> FleetChanges:
        """The changes since the last read (*now*: naive UTC), or everything.

        With *image_properties* those of the instances' images are part of the system metadata.
        Raises oslo.db's errors when the database does not answer; then the next read is full.
        """
        heartbeats: Heartbeats = {}
        if self._read_at is not None and not full:
            heartbeats = self._heartbeats.read(now, LATE_SECONDS)
        self._reads_images = image_properties
        changes = self._session.run(lambda connection: self._read(connection, now, full=full))
        return dataclasses.replace(changes, heartbeats=heartbeats) if heartbeats else changes

    def read_beside(self, now: datetime.datetime) -> Sequence[FleetChanges]:
        """The heartbeats since the last call; what was committed late is left to the next read.

        For another thread than that of the reads, once they have begun, and one at a time.
        """
        if not self._has_begun:
            return ()
        if isinstance(self._poll, fleet_poll.StampsPoll):
            self._heartbeats.have(functools.partial(self._poll.look_back, now=now))
        heartbeats = self._heartbeats.read(now, HEARTBEAT_SECONDS)
        return [FleetChanges(False, heartbeats=heartbeats, cell=self.cell)]

    def _read(
        self, connection: sa.Connection, now: datetime.datetime, *, full: bool
    ) -> FleetChanges:
        """The poll, and the rows that it names, in one snapshot.

        Rows read later than the poll may be fuller than it has shown, while other hosts, emptied
        since, are not read: together a state that never was, and perhaps without room.
        """
        # The poll does not show a row twice: until its rows are read, only a full read can follow.
        last_read_at, self._read_at = self._read_at, None
        news: News | None = None if full or last_read_at is None else {}
        services = self._heartbeats.changes
        if news is not None and self._is_quiet:
            news = self._poll.run(connection, now, services)
            if news == {}:
                self._read_at = now
                return FleetChanges(False, cell=self.cell)
        with self._session.snapshot():
            if (before := news) is not None:
                news = self._poll.run(connection, now, services)
            if before and news is not None:
                kinds = {*before, *news}
                news = {kind: before.get(kind, set()) | news.get(kind, set()) for kind in kinds}
            self._is_quiet = not news
            changes = None if news is None else self._changed(connection, now, news)
            return changes or self._everything(connection, now, last_read_at)

    def _changed(
        self, connection: sa.Connection, now: datetime.datetime, news: News
    ) -> FleetChanges | None:
        """The changed rows; None if some cannot be found any more.

        The instances come first: a node that reports one is not read before it.
        """
        instance_ids, node_ids = news.get(INSTANCES, set()), news.get(NODES, set())
        instances = self._instances.by_ids(connection, instance_ids)
        nodes = self._nodes.by_ids(connection, node_ids)
        if len(instances) < len(instance_ids) or len(nodes) < len(node_ids):
            return None
        metadata: dict[str, dict[str, str | None]] = {}
        for some in rows.in_batches(sorted(instance_ids)) if self._reads_images else ():
            metadata |= fleet_rows.image_properties(connection, tables.instances.c.id.in_(some))
        # An instance may be newer than its host's timestamp says, and the host counts it already.
        homes = {(row.host, row.node) for row in instances if row.host and not row.deleted}
        homes.difference_update((row.host, row.hypervisor_hostname) for row in nodes)
        nodes.extend(compute_nodes.living_rows(connection, homes))
        services = fleet_rows.living_services(connection) if MEMBERS in news else None
        flagged = news.get(FLAGS, ()) if services is None else ()
        changed = fleet_rows.living_services(connection, flagged)
        has_aggregates = AGGREGATES in news and self._reads_aggregates
        late_rows, self._poll.late = self._poll.late, 0
        self._read_at = now
        return FleetChanges(
            False,
            nodes,
            instances,
            services,
            changed,
            aggregates=aggregate_rows.list_all(connection) if has_aggregates else None,
            cell=self.cell,
            system_metadata=metadata,
            late_rows=late_rows,
        )

    def _everything(
        self,
        connection: sa.Connection,
        now: datetime.datetime,
        last_read_at: datetime.datetime | None,
    ) -> FleetChanges:
        """All that lives, and instances on no host touched lately: claims on these may be open."""
        kind = fleet_poll.ChangesPoll if fleet_poll.are_kept(connection) else fleet_poll.StampsPoll
        poll = kind(self.database, self._overlap)
        self._heartbeats.begin(connection, now)
        poll.begin(connection, now, self._heartbeats.changes)
        self._poll, self._has_begun = poll, True
        late = (last_read_at or now - PAST) - fleet_poll.LOOK_BACK
        placed = fleet_rows.PLACED
        elsewhere = fleet_rows.instances(connection, fleet_rows.on_no_host(late))
        present = fleet_rows.instances(connection, placed)
        services = fleet_rows.living_services(connection)
        aggregates = aggregate_rows.list_all(connection) if self.finds_aggregates else None
        nodes: Iterable[Any] = self._all_nodes(now)
        if self.cell is not None:
            nodes = list(nodes)  # a cell that fails must do so here, where it can be left out
        metadata = fleet_rows.image_properties(connection, placed) if self._reads_images else {}
        return FleetChanges(
            True,
            nodes,
            [*elsewhere, *present],
            services,
            aggregates=aggregates,
            cell=self.cell,
            system_metadata=metadata,
        )

    def _all_nodes(self, now: datetime.datetime) -> Iterator[Any]:
        """Every living node by id, fetched in chunks; only after the last one the read is done."""
        last = 0
        with self._session.snapshot():
            while True:
                chunk = self._session.run(functools.partial(self._nodes.living_after, last=last))
                yield from chunk
                if len(chunk) < fleet_rows.CHUNK:
                    break
                last = chunk[-1].id
        self._read_at = now
