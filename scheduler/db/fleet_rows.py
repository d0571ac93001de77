"""Queries for the rows that the host table is made of, and the SQL that polls share."""

import collections
import datetime
import math
import operator
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final

import sqlalchemy as sa

from scheduler.db import rows, tables
from scheduler.db.database import Database
from scheduler.db.services import COMPUTE_BINARY

News = dict[str, set[int]]
"""By kind the ids of the rows that changed, came or went.  Of the last two kinds nobody needs ids.

*compute_nodes*, *instances*: rows; *service_flags*: services whose other columns, heartbeats
apart, have changed; *services*: some came, went or got another name; *aggregates*: any change.
"""
NODES: Final = "compute_nodes"
INSTANCES: Final = "instances"
FLAGS: Final = "service_flags"
MEMBERS: Final = "services"
AGGREGATES: Final = "aggregates"


class Dialect:
    """SQL expressions of the engine called *name*: ``sqlite``, ``mysql`` or ``postgresql``."""

    def __init__(self, name: str) -> None:
        self.name = name

    def joined(self, *parts: sa.ColumnElement[Any], separator: str = ":") -> sa.ColumnElement[str]:
        """The *parts*, of which none is NULL, as one text."""
        texts = [part if self.name == "mysql" else sa.cast(part, sa.Text) for part in parts]
        if self.name != "sqlite":
            return sa.func.concat_ws(separator, *texts)
        text = texts[0]
        for each in texts[1:]:
            text = text + separator + each
        return text

    def listed(self, text: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
        """The texts of all rows, with commas between them.

        Not ``aggregate_strings``: SQLAlchemy 2.0 leaves parameters in it where literals are wanted.
        """
        if self.name == "postgresql":
            listed = sa.func.string_agg(text, sa.literal(",", sa.Text()))
        else:
            listed = sa.func.group_concat(text)
        return sa.func.coalesce(listed, sa.literal("", sa.Text()))

    def digest(self, text: sa.ColumnElement[str]) -> sa.ColumnElement[Any]:
        """Text or number without a comma that changes with *text*."""
        return (sa.func.md5 if self.name == "postgresql" else sa.func.crc32)(text)

    def version(self, table: sa.Table, columns: Iterable[sa.Column[Any]]) -> sa.ColumnElement[Any]:
        """Text or number that changes with the content of *columns*, or with any write."""
        if self.name == "postgresql":
            return sa.cast(sa.literal_column(f"{table.name}.xmin", sa.Text), sa.Text)
        return self.digest(self.joined(*self.texts(*columns)))

    def texts(self, *columns: sa.Column[Any]) -> list[sa.ColumnElement[Any]]:
        """The *columns* as texts, ``~`` for NULL.

        Columns that are never NULL are not asked, as that takes MariaDB time in every poll.
        """
        as_text = sa.cast if self.name == "postgresql" else sa.type_coerce
        texts = [(each, as_text(each, sa.Text())) for each in columns]
        null = sa.literal("~", sa.Text())
        return [
            sa.func.coalesce(text, null) if column.nullable or self.name == "sqlite" else text
            for column, text in texts
        ]


class Compiled:
    """A SELECT that is fitted to *database* and put into SQL once.

    Names in braces in a ``sa.text`` within it are replaced at every execution.  For a poll this
    saves 9 ms of each execution on older tables of Nova, where it would be fitted every time.
    """

    def __init__(self, database: Database, statement: sa.Select[Any]) -> None:
        self._database = database
        self._statement = statement
        self._sql: str | None = None

    def execute(self, connection: sa.Connection, **literals: object) -> sa.CursorResult[Any]:
        """Execute it with SQL for the names in braces."""
        if self._sql is None:
            database = self._database
            fitted = database.layout.fitted(self._statement, database.dialect_name)
            how = {"literal_binds": True}
            self._sql = str(fitted.compile(dialect=connection.dialect, compile_kwargs=how))
        return connection.exec_driver_sql(self._sql.format(**literals))


def entries_of(text: str | None) -> set[str]:
    """The texts that :meth:`Dialect.listed` has put together."""
    return set(filter(None, (text or "").split(",")))


def numbers_of(entries: Iterable[str]) -> set[int]:
    return {int(each.partition(":")[0]) for each in entries}


#: Rows of one round trip.
CHUNK = rows.BATCH
#: Keys of an instance's system metadata that hold properties of its image.
IMAGE_KEY_PREFIX = "image_"

_NODES = tables.compute_nodes.c
#: Columns that a compute service may change while it runs.
CHANGING_COLUMNS = [
    _NODES[name]
    for name in (
        *("host", "hypervisor_hostname", "deleted", "vcpus", "vcpus_used", "memory_mb"),
        *("memory_mb_used", "free_ram_mb", "local_gb", "local_gb_used", "free_disk_gb"),
        *("disk_available_least", "stats", "metrics", "pci_stats", "numa_topology"),
        *("cpu_allocation_ratio", "ram_allocation_ratio", "disk_allocation_ratio"),
    )
]
NODE_COLUMNS = [
    *(_NODES[name] for name in ("id", "uuid", "created_at", "updated_at", "deleted_at")),
    *(_NODES[name] for name in ("hypervisor_type", "hypervisor_version", "host_ip", "cpu_info")),
    _NODES.supported_instances,
    *CHANGING_COLUMNS,
]
#: Without these a compute node is no candidate; a time or number may be NULL.
NEEDED_COLUMNS = [
    *(_NODES.host, _NODES.hypervisor_hostname, _NODES.uuid, _NODES.created_at, _NODES.updated_at),
    *(each for each in NODE_COLUMNS if isinstance(each.type, sa.Integer | sa.Float)),
]
_needed_of = operator.attrgetter(*(each.name for each in NEEDED_COLUMNS))
_INSTANCES = tables.instances.c
INSTANCE_COLUMNS = [
    _INSTANCES[name]
    for name in (
        *("id", "uuid", "host", "node", "project_id", "user_id", "instance_type_id", "vm_state"),
        *("task_state", "deleted", "created_at", "updated_at"),
    )
]
#: Control characters are escaped in JSON.
_SEPARATOR, _NULL = "\x1f", "\x1e"
_PARSERS: dict[type, Callable[[str], Any]] = {
    sa.Integer: int,
    sa.Float: float,
    sa.DateTime: datetime.datetime.fromisoformat,
}
PLACED = sa.and_(_INSTANCES.deleted == 0, _INSTANCES.host.is_not(None))
"""Criterion of the instances that live on a host."""

_TABLE = tables.services
SERVICE_FLAGS = (_TABLE.c.disabled, _TABLE.c.forced_down)
LIVING_SERVICES = (_TABLE.c.binary == COMPUTE_BINARY, _TABLE.c.deleted == 0)


def is_complete(row: Any) -> bool:
    """True when the *row* of a compute node has its names, real times and finite numbers only.

    SQLite keeps a text in a column of numbers or times, PostgreSQL a ratio that is not finite.
    """
    host, node, uuid, created_at, updated_at, *numbers = _needed_of(row)
    if None in (host, node, uuid) or tables.NO_TIME in (created_at, updated_at):
        return False
    try:
        return math.isfinite(sum(filter(None, numbers)))
    except TypeError:
        return False


def on_no_host(since: datetime.datetime) -> sa.ColumnElement[bool]:
    """Criterion of instances that are deleted or on no host, and were touched since (naive UTC)."""
    stamps = (_INSTANCES.updated_at, _INSTANCES.created_at, _INSTANCES.deleted_at)
    return sa.and_(
        sa.or_(_INSTANCES.deleted != 0, _INSTANCES.host.is_(None)),
        sa.or_(*(each >= since for each in stamps)),
    )


def instances(connection: sa.Connection, which: sa.ColumnElement[bool]) -> Sequence[Any]:
    return connection.execute(sa.select(*INSTANCE_COLUMNS).where(which)).all()


class RowReader:
    """Reads of some *columns* of one table, ``id`` first, in one *database*.

    Rows of MySQL and MariaDB are fetched as one text: their driver takes 1 µs for each value.
    """

    def __init__(self, database: Database, columns: Sequence[sa.Column[Any]]) -> None:
        self._is_mysql = database.dialect_name == "mysql"
        self._query = sa.select(*columns).order_by(columns[0]).limit(CHUNK)
        make_type: Any = collections.namedtuple
        self._row = make_type("Row", [each.name for each in columns])
        self._parsers = [_PARSERS.get(type(each.type), str) for each in columns]
        self._id = columns[0]
        texts = [sa.func.coalesce(sa.type_coerce(each, sa.Text()), _NULL) for each in columns]
        joined = self._query.with_only_columns(sa.func.concat_ws(_SEPARATOR, *texts))
        self._joined = Compiled(database, joined.where(sa.text("{which}")))

    def living_after(self, connection: sa.Connection, last: int) -> Sequence[Any]:
        """The next living rows by id, after that of id *last*."""
        return self._read(connection, f"deleted = 0 AND {self._id} > {last}")

    def by_ids(self, connection: sa.Connection, ids: Collection[int]) -> list[Any]:
        """The rows with these ids, in the order of the ids."""
        found: list[Any] = []
        for some in rows.in_batches(sorted(ids)):
            found += self._read(connection, f"{self._id} IN ({', '.join(map(str, some))})")
        return found

    def _read(self, connection: sa.Connection, which: str) -> Sequence[Any]:
        if self._is_mysql:
            found = self._joined.execute(connection, which=which).scalars()
            try:
                return [self._parsed(each) for each in found]
            except ValueError:  # a separator in a document, or a time that Python does not have
                pass
        return connection.execute(self._query.where(sa.text(which))).all()

    def _parsed(self, text: str | None) -> Any:
        values = (text or "").split(_SEPARATOR)
        pairs = zip(self._parsers, values, strict=True)
        return self._row(*(None if each == _NULL else parse(each) for parse, each in pairs))


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


def living_services(connection: sa.Connection, ids: Collection[int] | None = None) -> Sequence[Any]:
    """Every living compute service by id, or those of these *ids*."""
    query = sa.select(*_TABLE.c).where(*LIVING_SERVICES).order_by(_TABLE.c.id)
    if ids is None:
        return connection.execute(query).all()
    return rows.select_in(connection, query, _TABLE.c.id, sorted(ids))
