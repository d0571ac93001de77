"""Column types and column groups that the tables of both layouts share."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, DateTime, Dialect, Integer, MetaData, String, Text
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.types import TypeDecorator, TypeEngine

metadata = MetaData()

#: Text of up to 16 MiB where plain TEXT is only 64 KiB.
MediumText = Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")

#: Names are compared byte by byte on every engine, as SQLite and PostgreSQL do anyway; emoji fit.
TABLE_OPTIONS: dict[str, Any] = {
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


def timestamps() -> list[Column[Any]]:
    """The columns of every table: when the row was inserted and last updated, naive UTC."""
    return [Column("created_at", DateTime), Column("updated_at", DateTime)]


def soft_delete() -> list[Column[Any]]:
    """The main layout's: ``deleted`` is 0 while the row lives and its own id afterwards."""
    return [*timestamps(), Column("deleted_at", DateTime), Column("deleted", Integer)]
