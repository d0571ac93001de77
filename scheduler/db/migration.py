"""Creation and upgrade of the tables, and the check that they are up to date.

A database that a real Nova made is never changed here (reference page database, section 10).
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterable
from typing import Any

import sqlalchemy
from alembic import command, util
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from scheduler import errors
from scheduler.db import baseline
from scheduler.db.database import Database
from scheduler.db.layout import NEEDED_TABLES, NOVA_VERSION_TABLES
from scheduler.db.migrations import VERSION_TABLE

SYNC_COMMAND = "nova-scheduler-manage db sync"


def sync(database: Database, revision: str = "head") -> None:
    """Create or upgrade the tables up to *revision*; nothing happens when they are there.

    Raises DatabaseNotReady for a real Nova's database, which is its own tools' to change, and
    for a *revision* that does not exist.
    """
    _create_folder(database)
    with database.write() as connection:
        foreign = _nova_version_table(connection)
        if foreign is not None:
            raise errors.DatabaseNotReady(
                reason=f"{database.masked_url} has the table {foreign}, so it is a real Nova's: "
                "use nova-manage to create or upgrade its tables"
            )
        config = _config()
        config.attributes["connection"] = connection
        try:
            if _revision(connection) is None and revision in ("head", head()):
                baseline.create_all(connection)
                command.stamp(config, "head")
            else:
                command.upgrade(config, revision)
        except util.CommandError as error:
            raise errors.DatabaseNotReady(reason=str(error)) from error


def _create_folder(database: Database) -> None:
    if database.is_embedded_default and database.url.database:
        pathlib.Path(database.url.database).parent.mkdir(parents=True, exist_ok=True)


def version(database: Database) -> str | None:
    """The revision that the tables are at; None when :func:`sync` has never run."""
    if _is_absent(database):
        return None
    with database.read() as connection:
        return _revision(connection)


def revision(connection: Connection, version_table: str | None) -> str | None:
    """The revision of the tables; *version_table* is Nova's, None for ours."""
    if version_table is None:
        return _revision(connection)
    column: sqlalchemy.ColumnClause[Any] = sqlalchemy.column(NOVA_VERSION_TABLES[version_table])
    table = sqlalchemy.table(version_table, column)
    found = connection.execute(sqlalchemy.select(table.c[column.name])).scalar()
    return None if found is None else str(found)


def head() -> str:
    """The revision that this program needs."""
    (newest,) = ScriptDirectory.from_config(_config()).get_heads()
    return newest


def check_ready(database: Database, needed: Iterable[str] = NEEDED_TABLES) -> None:
    """Raise DatabaseNotReady, with the command to run, unless the tables can be used.

    A real Nova's database can, whatever its version, if it has the tables that are *needed*.
    """
    if _is_absent(database):
        raise errors.DatabaseNotReady(
            reason=f"{database.masked_url} does not exist; create it with: {SYNC_COMMAND}"
        )
    with database.read() as connection:
        found = _revision(connection)
    layout = database.layout
    if found is None and layout.is_nova:
        lacking = [table for table in needed if not layout.has(table)]
        if not lacking:
            return
        reason = f"{database.masked_url} is a Nova database without {', '.join(lacking)}"
        raise errors.DatabaseNotReady(reason=reason)
    if found is None:
        raise errors.DatabaseNotReady(
            reason=f"{database.masked_url} has no tables; create them with: {SYNC_COMMAND}"
        )
    if found != head():
        raise errors.DatabaseNotReady(
            reason=f"the tables of {database.masked_url} are at revision {found}, {head()} is "
            f"needed; upgrade them with: {SYNC_COMMAND}, or the program if they are newer"
        )


def _is_absent(database: Database) -> bool:
    """True for a SQLite file that does not exist: connecting would create an empty one."""
    path = database.url.database
    if database.dialect_name != "sqlite" or not path or path == ":memory:":
        return False
    return not path.startswith("file:") and not pathlib.Path(path).exists()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", "scheduler.db:migrations")
    return config


def _revision(connection: Connection) -> str | None:
    options = {"version_table": VERSION_TABLE}
    return MigrationContext.configure(connection, opts=options).get_current_revision()


def _nova_version_table(connection: Connection) -> str | None:
    inspector = sqlalchemy.inspect(connection)
    return next((name for name in NOVA_VERSION_TABLES if inspector.has_table(name)), None)
