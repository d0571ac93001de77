"""Writing rows, and conversion between rows and wire objects.

Sections 1.2, 1.3 and 10 of the reference page database.  A column fills the field of its name.
Objects hold aware times and address objects, rows naive UTC and text (page objects, section 1.2).
"""

import contextlib
import datetime
import ipaddress
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from oslo_db import exception as db_exception
from oslo_utils import timeutils
from sqlalchemy import ColumnElement, Connection, RowMapping, Select, Table, select

from scheduler import errors, objects
from scheduler.db import layout

Value = TypeVar("Value")
WireObject = TypeVar("WireObject", bound=objects.WireObject)

#: Set where a row is written, never taken from an object.
OWN_COLUMNS = frozenset(("id", "created_at", "updated_at", "deleted_at", "deleted"))

BATCH = 1000


def utcnow() -> datetime.datetime:
    """Now, as columns hold it: naive UTC without a fraction of a second."""
    return timeutils.utcnow().replace(microsecond=0)


def insert(connection: Connection, table: Table, **values: Any) -> int:
    """Insert one row and return its id; its times, ``deleted`` and ``uuid`` are set here."""
    statement = table.insert().values(**_written(connection, table, {**_born(table), **values}))
    key: Any = connection.execute(statement).inserted_primary_key
    return int(key[0])


def insert_many(connection: Connection, table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
    """Insert all *rows*, like :func:`insert`; a column that only others name is NULL."""
    several = [_written(connection, table, {**_born(table), **row}) for row in rows]
    names = dict.fromkeys(name for row in several for name in row)
    if several:
        connection.execute(table.insert(), [{**names, **row} for row in several])


def _born(table: Table) -> dict[str, Any]:
    values: dict[str, Any] = {"created_at": utcnow()}
    if "deleted" in table.c:
        values["deleted"] = 0
    if "uuid" in table.c:
        values["uuid"] = str(uuid.uuid4())
    return values


def _written(connection: Connection, table: Table, values: Mapping[str, Any]) -> dict[str, Any]:
    columns = {name: to_column(value) for name, value in values.items()}
    return layout.layout_of(connection).writable(table, columns)


def update(
    connection: Connection, table: Table, *criteria: ColumnElement[bool], **values: Any
) -> int:
    """Update the rows that meet all *criteria*, with ``updated_at``; return how many there were."""
    written = _written(connection, table, {"updated_at": utcnow(), **values})
    return connection.execute(table.update().where(*criteria).values(**written)).rowcount


@contextlib.contextmanager
def unique(kind: str, name: str) -> Iterator[None]:
    """Raise AlreadyExists(*kind*, *name*) where the database says that the row is a duplicate."""
    try:
        yield
    except db_exception.DBDuplicateEntry as error:
        raise errors.AlreadyExists(kind=kind, name=name) from error


def in_batches(values: Sequence[Value]) -> Iterator[Sequence[Value]]:
    """*values* in parts short enough for an ``IN`` list on every engine."""
    for start in range(0, len(values), BATCH):
        yield values[start : start + BATCH]


def read(
    connection: Connection, table: Table, *criteria: ColumnElement[bool]
) -> Sequence[RowMapping]:
    """The living rows that meet all *criteria*, by id."""
    living = layout.layout_of(connection).living(table)
    query = select(table).where(*living, *criteria).order_by(table.c.id)
    return connection.execute(query).mappings().all()


def children(
    connection: Connection, parent: str, ids: Sequence[Any], *tables: Table
) -> Iterator[dict[Any, list[Any]]]:
    """Per table the living rows, by id, for each of *ids*, which the column *parent* holds."""
    for table in tables:
        found: dict[Any, list[Any]] = {each: [] for each in ids}
        living = layout.layout_of(connection).living(table)
        query = select(table).where(*living).order_by(table.c.id)
        for row in select_in(connection, query, table.c[parent], found):
            found[getattr(row, parent)].append(row)
        yield found


def select_in(
    connection: Connection, query: Select[Any], column: ColumnElement[Any], values: Iterable[Any]
) -> list[Any]:
    """Rows of *query* whose *column* is one of *values*, asked for in parts."""
    found: list[Any] = []
    for some in in_batches(list(values)):
        found.extend(connection.execute(query.where(column.in_(some))))
    return found


def to_object(cls: type[WireObject], row: Mapping[Any, Any], **others: Any) -> WireObject:
    """An object of *row* and *others*; NULL leaves a field unset that cannot be null."""
    values = {
        name: value
        for name, field in cls.FIELDS.items()
        if name in row
        and name not in others
        and ((value := readable(row[name], field.exact)) is not None or field.nullable)
    }
    return cls(**values, **others)


def readable(value: Any, kind: type | None = None) -> Any:
    """*value*; of what SQLite keeps in any column, bytes as text, a text for a number as NULL."""
    text = value.decode(errors="backslashreplace") if isinstance(value, bytes) else value
    return None if kind is int and isinstance(text, str) else text


def to_columns(source: objects.WireObject, table: Table) -> dict[str, Any]:
    """The set fields of *source* that are columns of *table*."""
    columns = set(table.c.keys()) - OWN_COLUMNS
    return {name: value for name, value in source.set_fields().items() if name in columns}


def to_column(value: Any) -> Any:
    """One value as a column holds it; lists, dicts and objects become JSON text."""
    if isinstance(value, datetime.datetime):
        return timeutils.normalize_time(value).replace(microsecond=0)
    if isinstance(value, (ipaddress.IPv4Address, ipaddress.IPv6Address)):
        return str(value)
    if isinstance(value, objects.WireObject):
        return json.dumps(value.obj_to_primitive())
    if isinstance(value, (list, dict)):
        return json.dumps(value)
    return value
