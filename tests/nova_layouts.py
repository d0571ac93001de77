"""Databases as Nova's own tools make them: the tables of a cell and of the API, of two releases.

The columns are those of reference page database, sections 3 and 4.  This project's tables have
the names of the newest release, so a layout is them, less what came later, and more what went.
"""

from collections.abc import Iterable, Mapping

import sqlalchemy as sa

from scheduler.db import tables
from scheduler.db.layout import API_TABLES, CELL_TABLES
from tests.world import databases

NEWTON, TODAY = "newton", "today"
CELL, API = "cell", "api"

#: Came after Newton.
LATER: Mapping[str, tuple[str, ...]] = {
    "compute_nodes": ("mapped",),
    "services": ("uuid",),
    "instances": ("compute_id", "hidden"),
    "instance_extra": ("trusted_certs", "resources", "vpmems"),
    "block_device_mapping": (
        *("uuid", "attachment_id", "volume_type", "encrypted", "encryption_secret_uuid"),
        *("encryption_format", "encryption_options"),
    ),
    "instance_group_policy": ("rules",),
    "flavors": ("description",),
    "build_requests": ("tags",),
    "instance_mappings": ("queued_for_delete", "user_id"),
    "cell_mappings": ("disabled",),
}
#: In the main database of Newton, too, with soft deletion; another name of a column.
MOVED = (
    *("aggregates", "aggregate_hosts", "aggregate_metadata"),
    *("instance_groups", "instance_group_member", "instance_group_policy"),
)
RENAMED = {"instance_group_member": {"instance_uuid": "instance_id"}}
VERSIONS = {
    (NEWTON, CELL): ("migrate_version", "334"),
    (NEWTON, API): ("migrate_version", "22"),
    (TODAY, CELL): ("alembic_version", "ab450ba04102"),
    (TODAY, API): ("alembic_version", "cdeec0c85668"),
}


def metadata(release: str, role: str) -> sa.MetaData:
    made = sa.MetaData()
    for name in CELL_TABLES if role == CELL else API_TABLES:
        _copy(made, tables.metadata.tables[name], LATER.get(name, ()) if release == NEWTON else ())
    if role == CELL:  # still there today, and empty
        for name in MOVED:
            _copy(made, tables.metadata.tables[name], LATER.get(name, ()), soft_deleted=True)
    return made


def create(url: str, release: str, role: str) -> None:
    """Make the tables of *release* in the empty database at *url*, and note its version."""
    version_table, version = VERSIONS[release, role]
    column = "version" if version_table == "migrate_version" else "version_num"
    with databases.transaction(url) as connection:
        metadata(release, role).create_all(connection)
        connection.exec_driver_sql(f"CREATE TABLE {version_table} ({column} VARCHAR(32))")
        connection.exec_driver_sql(f"INSERT INTO {version_table} VALUES ('{version}')")


def _copy(
    made: sa.MetaData, table: sa.Table, without: Iterable[str], *, soft_deleted: bool = False
) -> None:
    renamed = RENAMED.get(table.name, {}) if soft_deleted else {}
    columns = [
        sa.Column(
            renamed.get(column.name, column.name),
            column.type,
            primary_key=column.primary_key,
            nullable=column.nullable,
        )
        for column in table.c
        if column.name not in without
    ]
    if soft_deleted:
        columns += [sa.Column("deleted_at", sa.DateTime), sa.Column("deleted", sa.Integer)]
    options = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb3"}
    sa.Table(table.name, made, *columns, *_uniques(table, without, soft_deleted), **options)


def _uniques(
    table: sa.Table, without: Iterable[str], soft_deleted: bool
) -> list[sa.UniqueConstraint]:
    if soft_deleted:
        return []
    return [
        sa.UniqueConstraint(*(column.name for column in constraint.columns))
        for constraint in table.constraints
        if isinstance(constraint, sa.UniqueConstraint)
        and not {column.name for column in constraint.columns} & set(without)
    ]
