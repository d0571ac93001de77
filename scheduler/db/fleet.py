"""Reading the fleet: everything once, then only what changed.

One question of one round trip, the *look*, tells what that is.  It looks back an *overlap* behind
the watermark, wide enough for timestamps of whole seconds, clocks that differ and transactions
that commit late (:mod:`scheduler.db.fleet_windows`); its answers are those of one moment.  Rows
that vanish without a trace show in counters or counts, and make the read a full one.
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
from scheduler.db import change_counters, fleet_rows, fleet_services, single_host, tables
from scheduler.db.database import Database
from scheduler.db.fleet_aggregates import AggregateReader
from scheduler.db.fleet_glance import Glance
from scheduler.db.fleet_heartbeats import EVERY_SECONDS
from scheduler.db.fleet_metadata import metadata_prefix_for, metadata_where
from scheduler.db.fleet_services import ServiceReader
from scheduler.db.fleet_windows import EPOCH, FRESH, Answers, TouchedRows, whole_second
from scheduler.db.read_session import ReadSession

#: How far the first read looks back for instances that ended: nothing is promised to them now.
PAST = datetime.timedelta(minutes=10)


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
    """What one read of one cell found.  Rows have their table's column names as attributes.

    ``nodes`` come by id and can be gone through once: a full read fetches them while that is done.
    *full*: ``nodes``, ``services`` and ``instances`` are everything that lives in the cell, and
    whatever is not among them is gone; instances that ended of late are told as well.
    Otherwise they are changed rows, deleted ones included.
    ``flagged`` maps every disabled or forced-down compute host of the cell to its two flags (all
    other hosts are neither).  ``services`` and ``aggregates``, which are those of all cells, are
    None where nothing changed.  ``cell`` is None where the fleet is not divided into cells.
    ``system_metadata`` maps instances to theirs, as far as the reader was asked for it.
    """

    full: bool
    read_at: datetime.datetime
    nodes: Iterable[Any]
    instances: Sequence[Any]
    services: Sequence[Any] | None
    heartbeats: Sequence[Any]
    flagged: dict[str, tuple[bool, bool]]
    aggregates: Sequence[objects.Aggregate] | None
    cell: Cell | None = None
    system_metadata: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)


class FleetReader:
    """Reads of one database by one worker; remembers how far it got.

    *metadata_prefix* makes it read the instances' system metadata with such keys, too.  *cell* is
    the one that the database belongs to, if there are several.  Without *aggregates* it leaves
    them to whoever reads them elsewhere.  *clock* never goes back.  Each host's heartbeats are
    read as often as *heartbeat_seconds* says.
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
        name = database.dialect_name
        self._clock = clock
        self._session = ReadSession(database)
        self._nodes = TouchedRows(name, tables.compute_nodes, fleet_rows.NODE_COLUMNS)
        self._instances = TouchedRows(name, tables.instances, fleet_rows.INSTANCE_COLUMNS)
        self._services = ServiceReader(name, overlap, clock, heartbeat_seconds)
        self._aggregates = AggregateReader(database) if aggregates else None
        self._looks: dict[bool, sa.Select[Any]] = {}
        self._glance: Glance | None = None
        self._is_counted = False
        self._vanished: Any = None
        self._living: set[int] = set()
        self._read_at: datetime.datetime | None = None

    @classmethod
    def from_conf(
        cls, conf: Any, database: Database, cell: Cell | None = None, **more: Any
    ) -> FleetReader:
        """A reader of *database* with the overlap that is configured, and *more* arguments.

        It reads the properties of instances' images only for a weigher that looks at them.
        """
        overlap = datetime.timedelta(seconds=conf.scheduler.refresh_overlap_seconds)
        return cls(database, overlap, metadata_prefix_for(conf), cell, **more)

    def read_more(self, conf: Any) -> bool:
        """Read what *conf* needs, too, from the next full read on; whether that is anything."""
        wanted = metadata_prefix_for(conf)
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
        table, texts = tables.instances, tables.instance_system_metadata
        query = (
            sa.select(table.c.host)
            .join(texts, texts.c.instance_uuid == table.c.uuid)
            .where(texts.c.key == "group", texts.c.value == group, texts.c.deleted == 0)
            .where(table.c.deleted == 0, table.c.host.is_not(None))
            .order_by(table.c.id)
        )
        with self.database.read() as connection:
            return connection.execute(query).scalars().all()

    def close(self) -> None:
        """Give the connection up; the next read opens another."""
        self._session.close()

    def read(self, now: datetime.datetime, *, full: bool = False) -> Sequence[FleetChanges]:
        """What changed since the last read (*now*: naive UTC), or everything.

        Raises oslo.db's errors when the database does not answer; after that, the next read is a
        full one.
        """
        changes = self._session.run(lambda connection: self._read(connection, now, full=full))
        return [changes]

    def _read(
        self, connection: sa.Connection, now: datetime.datetime, *, full: bool
    ) -> FleetChanges:
        full = full or self._read_at is None
        late = (self._read_at or now - PAST) - self.overlap
        since = whole_second((self._read_at or now) - self.overlap)
        if not full and self._is_quiet(connection, since, now):
            flags = self._services.flagged
            return FleetChanges(False, now, (), (), None, (), flags, None, self.cell)
        with self._session.one_moment():
            return self._read_news(connection, now, since, late, full=full)

    def _read_news(
        self,
        connection: sa.Connection,
        now: datetime.datetime,
        since: int,
        late: datetime.datetime,
        *,
        full: bool,
    ) -> FleetChanges:
        """What the look shows, and the rows that it names, all of one moment.

        Rows that are read later than the look may be fuller than it has seen, while other hosts,
        emptied since, are not read: together a state that never was, and perhaps without room.
        """
        fresh = since if full else max(since, whole_second(now - FRESH))
        closely = full or not (self._nodes.is_settled and self._instances.is_settled)
        answers = self._ask(connection, since, fresh, closely=closely)
        # What the look has shown is not shown again: until its rows are read, only a full read
        # can follow.
        self._read_at = None
        instances = self._touched(connection, self._instances, answers, since, fresh)
        nodes = self._touched(connection, self._nodes, answers, since, fresh)
        vanished = self._have_vanished(answers)
        services = self._services.read(connection, answers, now, full=full)
        aggregates_changed = self._aggregates is not None and self._aggregates.have_changed(answers)
        common: dict[str, Any] = {"read_at": now, "cell": self.cell, **services}
        changes = None
        if not full and not vanished:
            changes = self._changed(connection, answers, instances, nodes, common)
        is_full = changes is None
        if changes is None:
            common.update(services=fleet_services.living(connection), heartbeats=())
            changes = self._everything(connection, now, late, common)
        if (is_full or aggregates_changed) and self._aggregates is not None:
            found = aggregate_rows.list_all(connection)
            changes = dataclasses.replace(changes, aggregates=found)
        if not is_full:
            self._read_at = now
        return changes

    # --- the look ------------------------------------------------------------------------

    def _is_quiet(self, connection: sa.Connection, since: int, now: datetime.datetime) -> bool:
        heard_since = self._services.heartbeats.heard_since(now)
        if self._glance is None or not self._glance.shows_nothing(connection, since, heard_since):
            return False
        if heard_since is not None:
            self._services.heartbeats.heard_nothing(now)
        self._read_at = now
        return True

    def _ask(self, connection: sa.Connection, since: int, fresh: int, *, closely: bool) -> Answers:
        if not self._looks:
            self._build_looks(connection)
        parameters = {"since": EPOCH + datetime.timedelta(seconds=since)}
        if closely:
            parameters["fresh"] = EPOCH + datetime.timedelta(seconds=fresh)
            parameters |= self._nodes.parameters(fresh) | self._instances.parameters(fresh)
        answers = connection.execute(self._looks[closely], parameters).one()._mapping
        if self._glance is not None:
            self._glance.note(answers)
        return answers

    def _build_looks(self, connection: sa.Connection) -> None:
        counted = change_counters.counted(connection)
        self._is_counted = {"compute_nodes", "instances"} <= counted
        questions = self._services.questions(counted="services" in counted)
        if self._aggregates is not None:
            questions.update(self._aggregates.questions(counted="aggregates" in counted))
        if self._is_counted:
            for name in ("compute_nodes", "instances"):
                questions[f"{name}_vanished"] = change_counters.question(name)
        else:
            living = sa.select(sa.func.count()).where(tables.compute_nodes.c.deleted == 0)
            questions["living"] = living.scalar_subquery()
        touched = (self._nodes, self._instances)
        self._glance = Glance(self.database, questions, touched, self._services.heartbeats)
        for closely in (False, True):
            both = [each.questions(closely=closely) for each in (self._instances, self._nodes)]
            every = {**questions, **both[0], **both[1]}
            self._looks[closely] = sa.select(*(each.label(name) for name, each in every.items()))

    def _have_vanished(self, answers: Answers) -> bool:
        """Whether counters say that rows are gone that left no trace."""
        if not self._is_counted:
            return False
        found = tuple(answers[f"{name}_vanished"] for name in ("compute_nodes", "instances"))
        vanished, self._vanished = found != self._vanished, found
        return vanished

    def _touched(
        self,
        connection: sa.Connection,
        rows: TouchedRows,
        answers: Answers,
        since: int,
        fresh: int,
    ) -> set[int]:
        clock = self._clock()
        news = rows.news(answers, since, fresh, clock)
        differing = rows.differing(answers, since)
        if differing:
            news |= rows.look_closer(connection, differing, clock)
        return news

    # --- the rows ------------------------------------------------------------------------

    def _changed(
        self,
        connection: sa.Connection,
        answers: Answers,
        instance_ids: set[int],
        node_ids: set[int],
        common: Mapping[str, Any],
    ) -> FleetChanges | None:
        """The changed rows; None if some cannot be found any more.

        The instances come first: a node that reports one is not read before it.
        """
        instances = self._rows(
            connection, self._instances, fleet_rows.INSTANCE_COLUMNS, instance_ids
        )
        metadata = self._metadata_of(connection, instance_ids)
        nodes = self._rows(connection, self._nodes, fleet_rows.NODE_COLUMNS, node_ids)
        if instances is None or nodes is None:
            return None
        if not self._is_counted:
            for row in nodes:
                (self._living.discard if row.deleted else self._living.add)(row.id)
            if len(self._living) != answers["living"]:
                return None
        # What is on a host by now may have arrived after the look, and the host said so then.
        homes = {(row.host, row.node) for row in instances if row.host and not row.deleted}
        homes.difference_update((row.host, row.hypervisor_hostname) for row in nodes)
        nodes.extend(single_host.reports(connection, homes))
        return FleetChanges(
            full=False,
            nodes=nodes,
            instances=instances,
            system_metadata=metadata,
            aggregates=None,
            **common,
        )

    def _everything(
        self,
        connection: sa.Connection,
        now: datetime.datetime,
        late: datetime.datetime,
        common: Mapping[str, Any],
    ) -> FleetChanges:
        """What lives, and the instances on no host that were touched since *late*.

        Somebody may wait for these.
        """
        elsewhere = fleet_rows.instances(connection, fleet_rows.on_no_host(late))
        present = fleet_rows.instances(connection, fleet_rows.PLACED)
        nodes: Iterable[Any] = self._all_nodes(now)
        if self.cell is not None:
            nodes = list(nodes)  # a cell that fails must do so here, where it can be left out
        return FleetChanges(
            full=True,
            nodes=nodes,
            instances=[*elsewhere, *present],
            system_metadata=metadata_where(connection, self.metadata_prefix, fleet_rows.PLACED),
            aggregates=None,
            **common,
        )

    def _all_nodes(self, now: datetime.datetime) -> Iterator[Any]:
        """Every living node by id, fetched in parts; only after the last one the read is done."""
        self._living = set()
        last = 0
        with self._session.one_moment():
            while True:
                part = self._session.run(functools.partial(fleet_rows.nodes_after, last=last))
                yield from part
                if not self._is_counted:
                    self._living.update(row.id for row in part)
                if len(part) < fleet_rows.CHUNK:
                    break
                last = part[-1].id
        self._read_at = now

    @staticmethod
    def _rows(
        connection: sa.Connection,
        touched: TouchedRows,
        columns: Sequence[sa.ColumnElement[Any]],
        ids: set[int],
    ) -> list[Any] | None:
        found: list[Any] = []
        for some in fleet_rows.parts(ids):
            query = sa.select(*columns).where(touched.table.c.id.in_(some))
            found.extend(connection.execute(query.order_by(touched.table.c.id)))
        missing = ids.difference(row.id for row in found) if len(found) < len(ids) else ()
        return None if any(not touched.is_known_deleted(each) for each in missing) else found

    def _metadata_of(
        self, connection: sa.Connection, ids: set[int]
    ) -> dict[str, dict[str, str | None]]:
        found: dict[str, dict[str, str | None]] = {}
        for some in fleet_rows.parts(ids):
            found.update(
                metadata_where(connection, self.metadata_prefix, tables.instances.c.id.in_(some))
            )
        return found
