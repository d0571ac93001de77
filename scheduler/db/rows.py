"""How rows are written, in both layouts (reference page database, sections 1.2, 1.3 and 10)."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from oslo_db import exception as db_exception
from oslo_utils import timeutils
from sqlalchemy import ColumnElement, Connection, Table

from scheduler import errors
from scheduler.db import layout

Value = TypeVar("Value")

BATCH = 1000


def utcnow() -> datetime.datetime:
    """Now, as columns hold it: naive UTC without a fraction of a second."""
    return timeutils.utcnow().replace(microsecond=0)


def insert(connection: Connection, table: Table, **values: Any) -> int:
    """Insert one row and return its id; ``created_at`` and ``deleted`` are set here."""
    written = layout.of(connection).writable(table, {**_born(table), **values})
    statement = table.insert().values(**written)
    key: Any = connection.execute(statement).inserted_primary_key
    return int(key[0])


def insert_many(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert all *rows*, which must have the same keys; nothing for an empty list."""
    if rows:
        born, known = _born(table), layout.of(connection)
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
    written = layout.of(connection).writable(table, values)
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
