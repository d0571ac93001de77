"""Column types, and the words in which the tables are written: columns of one type side by side."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeDecorator, TypeEngine

metadata = MetaData()

#: Text of up to 16 MiB where plain TEXT is only 64 KiB.
MediumText = Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")

#: Names are compared byte by byte on every engine, as SQLite and PostgreSQL do anyway; emoji fit.
OPTIONS: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}


class IPAddress(TypeDecorator[str]):
    """An IPv4 or IPv6 address, always text in Python; ``inet`` on PostgreSQL."""

    impl = String(39)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(postgresql.INET())
        return dialect.type_descriptor(String(39))

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else str(value)


def own_table(name: str, *items: SchemaItem, **options: Any) -> Table:
    """A table of this project's own: ``id``, then *items*."""
    key = Column("id", Integer, primary_key=True)
    return Table(name, metadata, key, *items, **OPTIONS, **options)


def api_table(name: str, *items: SchemaItem) -> Table:
    """A table of the API layout, with ``created_at`` and ``updated_at`` (naive UTC)."""
    return own_table(name, *columns(DateTime, "created_at", "updated_at"), *items)


def main_table(name: str, *items: SchemaItem) -> Table:
    """A table of the main layout: ``deleted`` is 0 while the row lives, and then its own id."""
    deletion = (Column("deleted_at", DateTime), Column("deleted", Integer))
    return api_table(name, *deletion, *items)


def columns(kind: Any, *names: str, required: bool = False) -> list[Column[Any]]:
    """One column of type *kind* for each name."""
    return [Column(name, kind, nullable=not required) for name in names]


def strings(*names: str, required: bool = False) -> list[Column[Any]]:
    """Texts of up to 255 characters."""
    return columns(String(255), *names, required=required)


def uuids(*names: str, required: bool = False) -> list[Column[Any]]:
    """Texts of up to 36 characters."""
    return columns(String(36), *names, required=required)


def integers(*names: str, required: bool = False) -> list[Column[Any]]:
    """32-bit integers."""
    return columns(Integer, *names, required=required)


def booleans(*names: str) -> list[Column[Any]]:
    """Truth values, NULL allowed."""
    return columns(Boolean, *names)


def reference(name: str, target: str, *, required: bool = True) -> Column[Any]:
    """An integer that is the id of a row elsewhere."""
    return Column(name, Integer, ForeignKey(target), nullable=not required)


def index(table: str, *names: str) -> Index:
    """An index named after its table and columns."""
    return Index("_".join((table, *names, "idx")), *names)
