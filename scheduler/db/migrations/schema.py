"""Words for writing a revision: columns of one type side by side.

Revisions are history, so what they use here must keep its meaning for good.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql, postgresql

MEDIUM_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")
IP_ADDRESS = sa.String(39).with_variant(postgresql.INET(), "postgresql")


def create_api_table(name: str, *items: sa.schema.SchemaItem) -> sa.Table:
    """A table of the API layout: ``id`` and the two timestamps, then *items*."""
    return op.create_table(
        name,
        *columns(sa.DateTime(), "created_at", "updated_at"),
        sa.Column("id", sa.Integer(), primary_key=True),
        *items,
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
    )


def create_main_table(name: str, *items: sa.schema.SchemaItem) -> sa.Table:
    """A table of the main layout: as in the API layout, and soft delete."""
    deletion = (sa.Column("deleted_at", sa.DateTime()), sa.Column("deleted", sa.Integer()))
    return create_api_table(name, *deletion, *items)


def columns(kind: Any, *names: str, required: bool = False) -> list[sa.Column[Any]]:
    """One column of type *kind* for each name."""
    return [sa.Column(name, kind, nullable=not required) for name in names]


def strings(*names: str, required: bool = False) -> list[sa.Column[Any]]:
    """Texts of up to 255 characters."""
    return columns(sa.String(255), *names, required=required)


def uuids(*names: str, required: bool = False) -> list[sa.Column[Any]]:
    """Texts of up to 36 characters."""
    return columns(sa.String(36), *names, required=required)


def integers(*names: str, required: bool = False) -> list[sa.Column[Any]]:
    """32-bit integers."""
    return columns(sa.Integer(), *names, required=required)


def booleans(*names: str) -> list[sa.Column[Any]]:
    """Truth values, NULL allowed."""
    return columns(sa.Boolean(), *names)


def reference(name: str, target: str, *, required: bool = True) -> sa.Column[Any]:
    """An integer that is the id of a row elsewhere."""
    return sa.Column(name, sa.Integer(), sa.ForeignKey(target), nullable=not required)


def index(table: str, *names: str) -> sa.Index:
    """An index named after its table and columns."""
    return sa.Index("_".join((table, *names, "idx")), *names)
