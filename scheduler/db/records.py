"""Between rows and wire objects.

A column fills the field of its name.  Objects hold aware times and address objects, rows naive
UTC and text (reference pages database, section 10, and objects, section 1.2).
"""

from __future__ import annotations

import datetime
import ipaddress
import json
from collections.abc import Mapping
from typing import Any, TypeVar

from sqlalchemy import Table

from scheduler import objects

WireObject = TypeVar("WireObject", bound=objects.WireObject)

#: Set where a row is written, never taken from an object.
OWN_COLUMNS = frozenset(("id", "created_at", "updated_at", "deleted_at", "deleted"))


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
