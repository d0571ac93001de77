"""Reading the fleet: everything once, then only what changed.

A delta read looks back an *overlap* behind the watermark, wide enough for timestamps of whole
seconds, clocks that differ and transactions that commit late.  Within the overlap a compute node
is read in full only if its timestamp differs from the one seen, or is so young that a second
write may hide behind the same second.  Rows that vanish without a trace show in a probe of count
and highest id, and make the read a full one.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from scheduler import objects
from scheduler.db import aggregates as aggregate_rows
from scheduler.db import tables
from scheduler.db.database import Database

#: A timestamp younger than this may still be given to another write.
SETTLE = datetime.timedelta(seconds=3)
#: How far the first read looks back for instances that ended: nothing is promised to them now.
PAST = datetime.timedelta(minutes=10)
COMPUTE_BINARY = "nova-compute"
#: Keys of an instance's system metadata that hold properties of its image.
IMAGE_KEY_PREFIX = "image_"
_CHUNK = 500

_NODE_COLUMNS = [
    tables.compute_nodes.c[name]
    for name in (
        *("id", "uuid", "host", "hypervisor_hostname", "deleted", "created_at", "updated_at"),
        *("deleted_at", "vcpus", "vcpus_used", "memory_mb", "memory_mb_used", "free_ram_mb"),
        *("local_gb", "local_gb_used", "free_disk_gb", "disk_available_least"),
        *("hypervisor_type", "hypervisor_version", "host_ip", "cpu_info", "supported_instances"),
        *("stats", "metrics", "pci_stats", "numa_topology"),
        *("cpu_allocation_ratio", "ram_allocation_ratio", "disk_allocation_ratio"),
    )
]
_INSTANCE_COLUMNS = [
    tables.instances.c[name]
    for name in (
        *("uuid", "host", "node", "project_id", "user_id", "instance_type_id", "vm_state"),
        *("task_state", "deleted", "created_at", "updated_at"),
    )
]
_AGGREGATE_TABLES = (tables.aggregates, tables.aggregate_hosts, tables.aggregate_metadata)


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
    nodes: Sequence[Any]
    instances: Sequence[Any]
    services: Sequence[Any] | None
    heartbeats: Sequence[Any]
    flagged: dict[str, tuple[bool, bool]]
    aggregates: Sequence[objects.Aggregate] | None
    cell: Cell | None = None
    system_metadata: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Probe:
    nodes: tuple[int, int | None]
    services: tuple[int, int | None]
    aggregates: tuple[Any, ...]


class FleetReader:
    """Reads of one database by one worker; remembers how far it got.

    *metadata_prefix* makes it read the instances' system metadata with such keys, too.  *cell* is
    the one that the database belongs to, if there are several.
    """

    def __init__(
        self,
        database: Database,
        overlap: datetime.timedelta,
        metadata_prefix: str | None = None,
        cell: Cell | None = None,
    ) -> None:
        self.database = database
        self.cell = cell
        self.overlap = overlap
        self.metadata_prefix = metadata_prefix
        self._seen: dict[int, datetime.datetime | None] = {}
        self._probe: _Probe | None = None
        self._read_at: datetime.datetime | None = None
        self._aggregates_settled = False

    @classmethod
    def from_conf(cls, conf: Any, database: Database, cell: Cell | None = None) -> FleetReader:
        """A reader of *database* with the overlap that is configured.

        It reads the properties of instances' images only for a weigher that looks at them.
        """
        overlap = datetime.timedelta(seconds=conf.scheduler.refresh_overlap_seconds)
        weighs_images = conf.filter_scheduler.image_props_weight_multiplier != 0
        return cls(database, overlap, IMAGE_KEY_PREFIX if weighs_images else None, cell)

    def services(self, topic: str) -> Sequence[Any]:
        """The service rows of *topic*, whatever their state, by id."""
        table = tables.services
        query = (
            sa.select(*table.c)
            .where(table.c.topic == topic, table.c.deleted == 0)
            .order_by(table.c.id)
        )
        with self.database.read() as connection:
            return connection.execute(query).all()

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

    def read(
        self, now: datetime.datetime, *, full: bool = False, heartbeats: bool = True
    ) -> Sequence[FleetChanges]:
        """What changed since the last read (*now*: naive UTC), or everything.

        Heartbeats are only read when asked for.  Raises oslo.db's errors when the database does
        not answer; the watermark then stays where it was.
        """
        with self.database.read() as connection:
            probe = self._read_probe(connection)
            if full or self._read_at is None or self._probe is None:
                return [self._read_full(connection, now, probe)]
            since = self._read_at - self.overlap
            changed = _touched(tables.instances, since, with_deletion=True)
            # What the instances say of a host must not be newer than what the host reports.
            instances = _instances_where(connection, changed)
            nodes = self._changed_nodes(connection, since, now)
            if len(self._seen_after(nodes)) != probe.nodes[0]:
                return [self._read_full(connection, now, probe)]
            changes = FleetChanges(
                full=False,
                read_at=now,
                nodes=nodes,
                instances=instances,
                services=self._services_if_changed(connection, probe),
                heartbeats=self._heartbeats(connection, since) if heartbeats else (),
                flagged=_flagged(connection),
                aggregates=self._aggregates_if_changed(connection, probe, now),
                cell=self.cell,
                system_metadata=self._metadata_where(connection, changed),
            )
        self._seen = self._seen_after(nodes)
        self._probe, self._read_at = probe, now
        return [changes]

    def _read_full(
        self, connection: sa.Connection, now: datetime.datetime, probe: _Probe
    ) -> FleetChanges:
        placed = sa.and_(tables.instances.c.deleted == 0, tables.instances.c.host.is_not(None))
        since = (self._read_at or now - PAST) - self.overlap
        ended = _touched(tables.instances, since, with_deletion=True)
        instances = _instances_where(connection, sa.or_(placed, ended))
        nodes = connection.execute(_live_nodes()).all()
        changes = FleetChanges(
            full=True,
            read_at=now,
            nodes=nodes,
            instances=instances,
            services=connection.execute(_live_services()).all(),
            heartbeats=(),
            flagged=_flagged(connection),
            aggregates=aggregate_rows.list_all(connection),
            cell=self.cell,
            system_metadata=self._metadata_where(connection, placed),
        )
        self._seen = {row.id: row.updated_at for row in nodes}
        self._probe, self._read_at = probe, now
        self._aggregates_settled = False
        return changes

    def _seen_after(self, nodes: Iterable[Any]) -> dict[int, datetime.datetime | None]:
        seen = dict(self._seen)
        for row in nodes:
            if row.deleted:
                seen.pop(row.id, None)
            else:
                seen[row.id] = row.updated_at
        return seen

    def _changed_nodes(
        self, connection: sa.Connection, since: datetime.datetime, now: datetime.datetime
    ) -> list[Any]:
        table = tables.compute_nodes
        stamps = sa.select(table.c.id, table.c.updated_at, table.c.deleted).where(
            _touched(table, since, with_deletion=True)
        )
        young = min(now, self._read_at or now) - SETTLE  # as of when they were seen
        wanted = [row.id for row in connection.execute(stamps) if self._is_news(row, young)]
        nodes: list[Any] = []
        for start in range(0, len(wanted), _CHUNK):
            some = wanted[start : start + _CHUNK]
            query = sa.select(*_NODE_COLUMNS).where(table.c.id.in_(some)).order_by(table.c.id)
            nodes.extend(connection.execute(query))
        return nodes

    def _is_news(self, row: Any, young: datetime.datetime) -> bool:
        if row.deleted:
            return row.id in self._seen
        if row.id not in self._seen or self._seen[row.id] != row.updated_at:
            return True
        return row.updated_at is None or row.updated_at >= young

    def _metadata_where(
        self, connection: sa.Connection, condition: sa.ColumnElement[bool]
    ) -> dict[str, dict[str, str | None]]:
        """System metadata of the instances that *condition* selects, as far as it is wanted."""
        found: dict[str, dict[str, str | None]] = {}
        if self.metadata_prefix is None:
            return found
        table = tables.instance_system_metadata
        query = (
            sa.select(table.c.instance_uuid, table.c.key, table.c.value)
            .join(tables.instances, tables.instances.c.uuid == table.c.instance_uuid)
            .where(
                condition,
                table.c.deleted == 0,
                table.c.key.startswith(self.metadata_prefix, autoescape=True),
            )
        )
        for uuid, key, value in connection.execute(query):
            found.setdefault(uuid, {})[key] = value
        return found

    def _services_if_changed(
        self, connection: sa.Connection, probe: _Probe
    ) -> Sequence[Any] | None:
        if self._probe is not None and probe.services == self._probe.services:
            return None
        return connection.execute(_live_services()).all()

    @staticmethod
    def _heartbeats(connection: sa.Connection, since: datetime.datetime) -> Sequence[Any]:
        table = tables.services
        query = sa.select(*table.c).where(
            table.c.binary == COMPUTE_BINARY, table.c.deleted == 0, _touched(table, since)
        )
        return connection.execute(query).all()

    def _aggregates_if_changed(
        self, connection: sa.Connection, probe: _Probe, now: datetime.datetime
    ) -> Sequence[objects.Aggregate] | None:
        unchanged = self._probe is not None and probe.aggregates == self._probe.aggregates
        if unchanged and self._aggregates_settled:
            return None
        stamps = [value for value in probe.aggregates if isinstance(value, datetime.datetime)]
        self._aggregates_settled = not stamps or max(stamps) < now - SETTLE
        return aggregate_rows.list_all(connection)

    @staticmethod
    def _read_probe(connection: sa.Connection) -> _Probe:
        nodes, services = tables.compute_nodes, tables.services
        parts: list[sa.ScalarSelect[Any]] = [
            sa.select(sa.func.count()).where(nodes.c.deleted == 0).scalar_subquery(),
            sa.select(sa.func.max(nodes.c.id)).where(nodes.c.deleted == 0).scalar_subquery(),
        ]
        live = (services.c.binary == COMPUTE_BINARY, services.c.deleted == 0)
        parts.append(sa.select(sa.func.count()).where(*live).scalar_subquery())
        parts.append(sa.select(sa.func.max(services.c.id)).where(*live).scalar_subquery())
        for table in _AGGREGATE_TABLES:
            parts.append(sa.select(sa.func.count()).select_from(table).scalar_subquery())
            for column in (table.c.id, table.c.created_at, table.c.updated_at):
                parts.append(sa.select(sa.func.max(column)).scalar_subquery())
        row = tuple(connection.execute(sa.select(*parts)).one())
        return _Probe(nodes=row[0:2], services=row[2:4], aggregates=row[4:])


def _touched(
    table: sa.Table, since: datetime.datetime, *, with_deletion: bool = False
) -> sa.ColumnElement[bool]:
    stamps = ["updated_at", "created_at", *(["deleted_at"] if with_deletion else [])]
    return sa.or_(*(table.c[name] >= since for name in stamps))


def _instances_where(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> Sequence[Any]:
    return connection.execute(sa.select(*_INSTANCE_COLUMNS).where(condition)).all()


def _live_nodes() -> sa.Select[Any]:
    table = tables.compute_nodes
    return sa.select(*_NODE_COLUMNS).where(table.c.deleted == 0).order_by(table.c.id)


def _live_services() -> sa.Select[Any]:
    table = tables.services
    return (
        sa.select(*table.c)
        .where(table.c.binary == COMPUTE_BINARY, table.c.deleted == 0)
        .order_by(table.c.id)
    )


def _flagged(connection: sa.Connection) -> dict[str, tuple[bool, bool]]:
    table = tables.services
    query = sa.select(table.c.host, table.c.disabled, table.c.forced_down).where(
        table.c.binary == COMPUTE_BINARY,
        table.c.deleted == 0,
        sa.or_(table.c.disabled == sa.true(), table.c.forced_down == sa.true()),
    )
    return {
        row.host: (bool(row.disabled), bool(row.forced_down)) for row in connection.execute(query)
    }
