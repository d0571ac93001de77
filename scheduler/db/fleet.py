"""Reads of the fleet: everything once, then what changed.

A poll tells what that is (:mod:`scheduler.db.fleet_poll`); the poll and the rows that it names are
read in one snapshot.  After a poll that found nothing, the next one is tried without a snapshot:
one round trip shows that nothing has changed.  Rows that vanish without a trace show in counters,
or to a look back (:mod:`scheduler.db.fleet_beside`), and make the read a full one.
"""

import dataclasses
import datetime
import functools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from scheduler import objects
from scheduler.db import aggregates as aggregate_rows
from scheduler.db import compute_nodes, fleet_rows, rows, tables
from scheduler.db.database import Database
from scheduler.db.fleet_beside import HEARTBEAT_SECONDS, LATE_SECONDS, LOOK_BACK, BesideReader
from scheduler.db.fleet_poll import SETTLED, Answers, ChangedRows, Dialect, FleetPoll, whole_second
from scheduler.db.fleet_rows import FLAGS, MEMBERS
from scheduler.db.sessions import ReadSession

#: The first read looks so far back for ended instances: no claim on older ones is open by then.
PAST = datetime.timedelta(minutes=10)

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
    ``flagged`` maps every disabled or forced-down compute host of the cell to its two flags; None:
    they were not read.  ``heartbeats`` are services whose flags may be older than these.
    ``services`` and ``aggregates``, which are those of all cells, are None where nothing changed.
    ``cell`` is None where the fleet is not divided into cells.
    ``system_metadata`` maps instances to theirs, as far as the reader was asked for it.
    ``late_rows`` of the changed ones were committed so late that a look back had to find them.
    """

    full: bool
    read_at: datetime.datetime
    nodes: Iterable[Any] = ()
    instances: Sequence[Any] = ()
    services: Sequence[Any] | None = None
    heartbeats: Sequence[Any] = ()
    flagged: dict[str, tuple[bool, bool]] | None = None
    aggregates: Sequence[objects.Aggregate] | None = None
    cell: Cell | None = None
    system_metadata: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    late_rows: int = 0


class FleetReader:
    """Reads of one database by one worker; remembers how far it got.

    *cell* is the one that the database belongs to, if there are several.  Without *aggregates* it
    leaves them to other readers.  Heartbeats that were read *late_seconds* ago are read by a read.
    """

    def __init__(
        self,
        database: Database,
        overlap: datetime.timedelta,
        cell: Cell | None = None,
        *,
        aggregates: bool = True,
        late_seconds: float = LATE_SECONDS,
    ) -> None:
        self.database = database
        self.cell = cell
        self.overlap = overlap
        self._late_seconds = late_seconds
        self._session = ReadSession(database)
        self._dialect = dialect = Dialect(database.dialect_name)
        self._changed_rows = (
            ChangedRows(dialect, tables.compute_nodes, fleet_rows.NODE_COLUMNS),
            ChangedRows(dialect, tables.instances, fleet_rows.INSTANCE_COLUMNS),
        )
        #: Rows that look backs have found and polls have not, since the last result.
        self._late = 0
        self._reads_aggregates, self._reads_images = aggregates, False
        self._beside = BesideReader(database, self._changed_rows)
        self._member_changes = 0
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
        self._beside.close()

    def read(
        self, now: datetime.datetime, *, full: bool = False, image_properties: bool = False
    ) -> Sequence[FleetChanges]:
        """The changes since the last read (*now*: naive UTC), or everything.

        With *image_properties* those of the instances' images are part of the system metadata.
        Raises oslo.db's errors when the database does not answer; after that, the next read is a
        full one.
        """
        heartbeats: Sequence[Any] = ()
        if self._read_at is not None and not full:
            heartbeats = self._beside.heartbeats(now, self._late_seconds)
        self._reads_images = image_properties
        changes = self._session.run(lambda connection: self._read(connection, now, full=full))
        return [dataclasses.replace(changes, heartbeats=heartbeats)]

    def read_beside(self, now: datetime.datetime) -> Sequence[FleetChanges]:
        """The heartbeats since the last call; what was committed late is left to the next read.

        For another thread than that of the reads, once they have begun, and one at a time.
        """
        if self._poll is None:
            return ()
        self._beside.look_back(now)
        heartbeats = self._beside.heartbeats(now, HEARTBEAT_SECONDS)
        return [FleetChanges(False, now, heartbeats=heartbeats, cell=self.cell)]

    def _read(
        self, connection: sa.Connection, now: datetime.datetime, *, full: bool
    ) -> FleetChanges:
        """The poll, and the rows that it names, in one snapshot.

        Rows read later than the poll may be fuller than it has shown, while other hosts, emptied
        since, are not read: together a state that never was, and perhaps without room.
        """
        full = full or self._read_at is None
        beside = self._beside
        before = self._read_at or now
        since = before - self.overlap
        recent = whole_second(min(since + SETTLED, before))
        times = whole_second(before - max(LOOK_BACK, self.overlap) if full else since), recent
        # The poll does not show a row twice: until its rows are read, only a full read can follow.
        last_read_at, self._read_at = self._read_at, None
        member_changes = beside.member_changes
        other_members = member_changes != self._member_changes
        self._member_changes = member_changes
        ids: list[set[int]] = [set(), set()]
        if self._is_quiet and not full:
            answers = self._ask(connection, times, ids, self._answers)
            if not any(ids) and answers == self._answers and not other_members:
                self._read_at = now
                return FleetChanges(False, now, flagged=self._flagged, cell=self.cell)
        with self._session.snapshot():
            answers = self._ask(connection, times, ids, {})
            news = {name for name in answers if answers[name] != self._answers.get(name)}
            if other_members:
                news.add(MEMBERS)
            self._answers, self._is_quiet = answers, not any(ids)
            changed = None
            if full:
                beside.begin(connection, now)
            elif news.isdisjoint(self._counters):
                changed = self._changed(connection, *ids)
            late = (last_read_at or now - PAST) - LOOK_BACK
            return self._result(connection, now, news, changed, late)

    def _make_poll(self, connection: sa.Connection) -> FleetPoll:
        counters = fleet_rows.counters(connection)
        state = fleet_rows.service_queries(self._dialect, counted="services" in counters)
        if self._reads_aggregates:
            counted = "aggregates" in counters
            of_aggregates = fleet_rows.aggregate_queries(self._dialect, counted=counted)
            self._aggregate_names = of_aggregates.keys()
            state |= of_aggregates
        names = [each.name for each in self._changed_rows]
        self._counters = names if counters.issuperset(names) else []
        state |= {name: fleet_rows.counter(name) for name in self._counters}
        return FleetPoll(self.database, state, self._changed_rows)

    def _ask(
        self,
        connection: sa.Connection,
        times: tuple[int, int],
        ids: Sequence[set[int]],
        before: Answers,
    ) -> Answers:
        """The answers of a poll; it adds to the *ids* of changed nodes and instances."""
        poll = self._poll = self._poll or self._make_poll(connection)
        answers, found = poll.run(connection, *times, before)
        for known, new, changed in zip(ids, found, self._changed_rows, strict=True):
            late = changed.take_late() - new
            self._late += len(late)
            known |= new | late
        if self._beside.node_ids:
            ids[0].update(self._beside.node_ids.popleft() ^ self._living)
        return answers

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
        if is_full or MEMBERS in news:
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
        late_rows, self._late = 0 if is_full else self._late, 0
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
            late_rows=late_rows,
        )

    def _changed(
        self, connection: sa.Connection, node_ids: set[int], instance_ids: set[int]
    ) -> Rows | None:
        """The changed rows; None if some cannot be found any more.

        The instances come first: a node that reports one is not read before it.
        """
        found: list[list[Any]] = []
        for changed, ids in zip(
            reversed(self._changed_rows), (instance_ids, node_ids), strict=True
        ):
            found.append(fleet_rows.by_ids(connection, changed.columns, ids))
            missing = ids.difference(row.id for row in found[-1])
            if not all(map(changed.is_known_deleted, missing)):
                return None
        instances, nodes = found
        metadata: dict[str, dict[str, str | None]] = {}
        for some in rows.in_batches(sorted(instance_ids)) if self._reads_images else ():
            metadata |= fleet_rows.image_properties(connection, tables.instances.c.id.in_(some))
        for row in nodes:
            (self._living.discard if row.deleted else self._living.add)(row.id)
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
                self._living.update(row.id for row in chunk)
                if len(chunk) < fleet_rows.CHUNK:
                    break
                last = chunk[-1].id
        self._read_at = now
