"""Writing rows, and conversion between rows and wire objects.

Sections 1.2, 1.3 and 10 of the reference page database.  A column fills the field of its name.
Objects hold aware times and address objects, rows naive UTC and text (page objects, section 1.2).
"""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from oslo_db import exception as db_exception
from oslo_utils import timeutils
from sqlalchemy import ColumnElement, Connection, Select, Table

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
    """Insert one row and return its id; ``created_at`` and ``deleted`` are set here."""
    written = layout.layout_of(connection).writable(table, {**_born(table), **values})
    statement = table.insert().values(**written)
    key: Any = connection.execute(statement).inserted_primary_key
    return int(key[0])


def insert_many(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert all *rows*, which must have the same keys; nothing for an empty list."""
    if rows:
        born, known = _born(table), layout.layout_of(connection)
        written = [known.writable(table, {**born, **row}) for row in rows]
        connection.execute(table.insert(), written)


def _born(table: Table) -> dict[str, Any]:
    values: dict[str, Any] = {"created_at": utcnow()}
    if "deleted" in table.c:
        values["deleted"] = 0
    return values


def update(
    connection: Connection, table: Table, *criteria: ColumnElement[bool], **values: Any
) -> int:
    """Update the rows that meet all *criteria*, with ``updated_at``; return how many there were."""
    values.setdefault("updated_at", utcnow())
    written = layout.layout_of(connection).writable(table, values)
    return connection.execute(table.update().where(*criteria).values(**written)).rowcount


def soft_delete(connection: Connection, table: Table, *criteria: ColumnElement[bool]) -> int:
    """Mark the living rows that meet *criteria* deleted; return how many there were.

    ``updated_at`` moves as well, so that whoever reads what changed sees the row go.
    """
    now = utcnow()
    statement = (
        table.update()
        .where(table.c.deleted == 0, *criteria)
        .values(deleted=table.c.id, deleted_at=now, updated_at=now)
    )
    return connection.execute(statement).rowcount


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


def select_in(
    connection: Connection, query: Select[Any], column: ColumnElement[Any], values: Iterable[Any]
) -> list[Any]:
    """Rows of *query* whose *column* is one of *values*, asked for in parts."""
    found: list[Any] = []
    for some in in_batches(list(values)):
        found.extend(connection.execute(query.where(column.in_(some))))
    return found


def to_object(cls: type[WireObject], row: Mapping[Any, Any], **others: Any) -> WireObject:
    """An object of class *cls* from the columns of *row* and the fields in *others*.

    A NULL where the field cannot be null leaves the field unset.
    """
    values = {
        name: row[name]
        for name, field in cls.FIELDS.items()
        if name in row and name not in others and (row[name] is not None or field.nullable)
    }
    return cls(**values, **others)


def to_columns(source: objects.WireObject, table: Table) -> dict[str, Any]:
    """The set fields of *source* that are columns of *table*, as column values."""
    fields = source.set_fields()
    return {
        column.name: to_column(fields[column.name])
        for column in table.c
        if column.name in fields and column.name not in OWN_COLUMNS
    }


def to_column(value: Any) -> Any:
    """One value as a column holds it; lists, dicts and objects become JSON text."""
    if isinstance(value, datetime.datetime):
        return _naive(value)
    if isinstance(value, (ipaddress.IPv4Address, ipaddress.IPv6Address)):
        return str(value)
    if isinstance(value, objects.WireObject):
        return json.dumps(objects.to_primitive(value))
    if isinstance(value, (list, dict)):
        return json.dumps(value)
    return value


def _naive(moment: datetime.datetime) -> datetime.datetime:
    if moment.tzinfo is not None:
        moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
    return moment.replace(microsecond=0)
