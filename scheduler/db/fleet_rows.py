"""Queries for the rows that the host table is made of, and a reader of aggregates."""

import datetime
from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from scheduler import objects
from scheduler.db import aggregates, rows, tables
from scheduler.db.database import Database
from scheduler.db.fleet_poll import Answers, Compiled, Dialect, Query
from scheduler.db.services import COMPUTE_BINARY
from scheduler.db.sessions import ReadSession

#: Rows of one round trip.
CHUNK = 500
#: Keys of an instance's system metadata that hold properties of its image.
IMAGE_KEY_PREFIX = "image_"

NODE_COLUMNS = [
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
_INSTANCES = tables.instances.c
INSTANCE_COLUMNS = [
    _INSTANCES[name]
    for name in (
        *("id", "uuid", "host", "node", "project_id", "user_id", "instance_type_id", "vm_state"),
        *("task_state", "deleted", "created_at", "updated_at"),
    )
]
PLACED = sa.and_(_INSTANCES.deleted == 0, _INSTANCES.host.is_not(None))
"""Criterion of the instances that live on a host."""

#: Modulus of the factors by which rows of one content count differently.
_SPREAD = 1021

#: Names of the queries for what changes rarely.
FLAGS = "services_flagged"
MEMBERS = "services"

_TABLE = tables.services
_FLAGS = (_TABLE.c.disabled, _TABLE.c.forced_down)
LIVING_SERVICES = (_TABLE.c.binary == COMPUTE_BINARY, _TABLE.c.deleted == 0)
_FLAGGED = (
    *LIVING_SERVICES,
    sa.or_(_TABLE.c.disabled == sa.true(), _TABLE.c.forced_down == sa.true()),
)


def on_no_host(since: datetime.datetime) -> sa.ColumnElement[bool]:
    """Criterion of instances that are deleted or on no host, and were touched since (naive UTC)."""
    stamps = (_INSTANCES.updated_at, _INSTANCES.created_at, _INSTANCES.deleted_at)
    return sa.and_(
        sa.or_(_INSTANCES.deleted != 0, _INSTANCES.host.is_(None)),
        sa.or_(*(each >= since for each in stamps)),
    )


def instances(connection: sa.Connection, which: sa.ColumnElement[bool]) -> Sequence[Any]:
    """All instances that meet the criterion *which*."""
    return connection.execute(sa.select(*INSTANCE_COLUMNS).where(which)).all()


def nodes_after(connection: sa.Connection, last: int) -> Sequence[Any]:
    """The next living compute nodes by id, after that of id *last*."""
    table = tables.compute_nodes
    query = sa.select(*NODE_COLUMNS).where(table.c.deleted == 0, table.c.id > last)
    return connection.execute(query.order_by(table.c.id).limit(CHUNK)).all()


def by_ids(
    connection: sa.Connection, columns: Sequence[sa.ColumnElement[Any]], ids: Iterable[int]
) -> list[Any]:
    """The *columns* of the rows with these ids, in the order of the ids."""
    query = sa.select(*columns).order_by(columns[0])
    return rows.select_in(connection, query, columns[0], sorted(ids))


def image_properties(
    connection: sa.Connection, condition: sa.ColumnElement[bool]
) -> dict[str, dict[str, str | None]]:
    """By uuid the system metadata about images, of the instances that meet *condition*."""
    table = tables.instance_system_metadata
    is_of_image = table.c.key.startswith(IMAGE_KEY_PREFIX, autoescape=True)
    query = (
        sa.select(table.c.instance_uuid, table.c.key, table.c.value)
        .join(tables.instances, tables.instances.c.uuid == table.c.instance_uuid)
        .where(condition, table.c.deleted == 0, is_of_image)
    )
    found: dict[str, dict[str, str | None]] = {}
    for uuid, key, value in connection.execute(query):
        found.setdefault(uuid, {})[key] = value
    return found


def counters(connection: sa.Connection) -> frozenset[str]:
    """Names of the counters that triggers move; none in a database that Nova made."""
    table = tables.change_counters
    if not sa.inspect(connection).has_table(table.name):
        return frozenset()
    return frozenset(connection.execute(sa.select(table.c.name)).scalars())


def counter(name: str) -> sa.ScalarSelect[int]:
    """The value of one counter; NULL if it is gone."""
    table = tables.change_counters
    return sa.select(table.c.value).where(table.c.name == name).scalar_subquery()


def service_queries(dialect: Dialect, *, counted: bool) -> dict[str, Query]:
    """Subqueries of a poll for membership, which triggers may have *counted*, and for flags.

    Elsewhere it is the newest service that is asked for: the primary key answers that at once.
    Services that go are seen with the heartbeats.
    """
    flags = [sa.case((column == sa.true(), 1), else_=0) for column in _FLAGS]
    flagged = dialect.listed(dialect.joined(_TABLE.c.id, *flags))
    newest = sa.select(sa.func.max(_TABLE.c.id)).scalar_subquery()
    return {
        FLAGS: sa.select(flagged).where(*_FLAGGED).scalar_subquery(),
        MEMBERS: counter("services") if counted else newest,
    }


def flagged_hosts(connection: sa.Connection) -> dict[str, tuple[bool, bool]]:
    """Both flags of each host that is disabled or forced down."""
    found = connection.execute(sa.select(_TABLE.c.host, *_FLAGS).where(*_FLAGGED))
    return {host: (bool(off), bool(down)) for host, off, down in found}


def living(connection: sa.Connection) -> Sequence[Any]:
    """Every living compute service by id."""
    return connection.execute(
        sa.select(*_TABLE.c).where(*LIVING_SERVICES).order_by(_TABLE.c.id)
    ).all()


def of_topic(connection: sa.Connection, topic: str) -> Sequence[Any]:
    """Every living service of *topic*, whatever its state, by id."""
    query = sa.select(*_TABLE.c).where(_TABLE.c.topic == topic, _TABLE.c.deleted == 0)
    return connection.execute(query.order_by(_TABLE.c.id)).all()


def aggregate_queries(dialect: Dialect, *, counted: bool) -> dict[str, Query]:
    """Subqueries of values that differ after any change of the aggregates.

    Where triggers count their changes (*counted*), that is one number.  Elsewhere the server sums
    up the contents of the small tables.  Of the memberships, which Nova never changes, the number
    and the newest are enough where no id is given twice: a tenth of the time.
    """
    if counted:
        return {"aggregates": counter("aggregates")}
    queries: dict[str, Query] = {}
    for table in (tables.aggregates, tables.aggregate_metadata, tables.aggregate_hosts):
        row_id = sa.cast(table.c.id, sa.BigInteger)
        if table is tables.aggregate_hosts and dialect.name != "sqlite":
            content: Query = sa.func.max(table.c.id)
        else:
            version = sa.cast(dialect.version(table, table.c), sa.BigInteger)
            content = sa.func.sum(version * (row_id % _SPREAD + 1))
        count = sa.select(sa.func.count()).select_from(table)
        queries[f"{table.name}_rows"] = count.scalar_subquery()
        queries[table.name] = sa.select(content).scalar_subquery()
    return queries


class AggregateReader:
    """The aggregates of one *database*, read again when they have changed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._session = ReadSession(database)
        self._query: Compiled | None = None
        self._seen: Answers | None = None
        self._found: Sequence[objects.Aggregate] = ()

    def read(self, *, full: bool = False) -> Sequence[objects.Aggregate]:
        """All aggregates: the same list if nothing has changed since the last read, unless *full*.

        Raises oslo.db's errors when the database does not answer.
        """
        self._session.run(lambda connection: self._read(connection, full=full))
        return self._found

    def _read(self, connection: sa.Connection, *, full: bool) -> None:
        if self._query is None:
            counted = "aggregates" in counters(connection)
            dialect = Dialect(self._database.dialect_name)
            queries = aggregate_queries(dialect, counted=counted)
            columns = [each.label(name) for name, each in queries.items()]
            self._query = Compiled(self._database, sa.select(*columns))
        answers = dict(self._query.execute(connection).mappings().one())
        if full or answers != self._seen:
            self._found, self._seen = aggregates.list_all(connection), answers

    def close(self) -> None:
        """Give the connection up."""
        self._session.close()
