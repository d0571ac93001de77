"""Creation and upgrade of the tables, and the check that they are up to date.

A database that a real Nova made is never changed here (reference page database, section 10).
"""

import pathlib
from collections.abc import Iterable

import sqlalchemy
from alembic import command, util
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from scheduler import errors
from scheduler.db import flavors, rows, tables, triggers
from scheduler.db.database import Database
from scheduler.db.databases import CELL0_UUID
from scheduler.db.layout import NEEDED_TABLES, NOVA_VERSION_TABLES
from scheduler.db.migrations import VERSION_TABLE

SYNC_COMMAND = "nova-scheduler-manage db sync"
#: name, memory in MB, vCPUs, root disk in GB; the flavorid is the place in this list.
_FLAVORS = (
    ("m1.tiny", 512, 1, 1),
    ("m1.small", 2048, 1, 20),
    ("m1.medium", 4096, 2, 40),
    ("m1.large", 8192, 4, 80),
    ("m1.xlarge", 16384, 8, 160),
)


def sync(database: Database, revision: str = "head") -> None:
    """Create or upgrade the tables up to *revision*; nothing happens when they are there.

    Raises DatabaseNotReady for a real Nova's database, which is its own tools' to change, and
    for a *revision* that does not exist.
    """
    if database.is_embedded_default and database.url.database:
        folder = pathlib.Path(database.url.database).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = f"{folder} cannot be made: {error.strerror}"
            raise errors.ConfigurationError(option="[DEFAULT] state_path", reason=reason) from error
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
                _create_all(connection)
                command.stamp(config, "head")
            else:
                command.upgrade(config, revision)
        except util.CommandError as error:
            raise errors.DatabaseNotReady(reason=str(error)) from error


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
    column: sqlalchemy.ColumnClause[str] = sqlalchemy.column(NOVA_VERSION_TABLES[version_table])
    found = connection.scalar(
        sqlalchemy.select(column).select_from(sqlalchemy.table(version_table))
    )
    return None if found is None else str(found)


def head() -> str:
    """The revision that this program needs."""
    (newest,) = ScriptDirectory.from_config(_config()).get_heads()
    return newest


def check_ready(database: Database, needed: Iterable[str] = NEEDED_TABLES) -> None:
    """Raise DatabaseNotReady, with the command to run, unless the tables can be used.

    A real Nova's database can, whatever its version, if it has the tables that are *needed*.
    """
    reason = _unreadiness(database, needed)
    if reason is not None:
        raise errors.DatabaseNotReady(reason=reason)


def _unreadiness(database: Database, needed: Iterable[str]) -> str | None:
    url = database.masked_url
    if _is_absent(database):
        return f"{url} does not exist; create it with: {SYNC_COMMAND}"
    with database.read() as connection:
        found = _revision(connection)
    layout = database.layout
    if found is None and layout.is_nova:
        lacking = [table for table in needed if not layout.has(table)]
        return f"{url} is a Nova database without {', '.join(lacking)}" if lacking else None
    if found is None:
        return f"{url} has no tables; create them with: {SYNC_COMMAND}"
    if found == head():
        return None
    return (
        f"the tables of {url} are at revision {found}, {head()} is needed; "
        f"upgrade them with: {SYNC_COMMAND}, or the program if they are newer"
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


# --- a new database ---------------------------------------------------------------------------


def _create_all(connection: Connection) -> None:
    """Create everything in a database without tables."""
    tables.metadata.create_all(connection)
    triggers.create(connection)
    names = ("name", "memory_mb", "vcpus", "root_gb")
    several = [
        {**flavors.DEFAULTS, **dict(zip(names, row, strict=True)), "flavorid": str(number)}
        for number, row in enumerate(_FLAVORS, start=1)
    ]
    rows.insert_many(connection, tables.flavors, several)
    cells: list[dict[str, object]] = [
        {"uuid": CELL0_UUID, "name": "cell0", "transport_url": "none:///", "disabled": False},
        # No URL: the cell is where this process is connected to.
        {"name": "cell1", "disabled": False},
    ]
    rows.insert_many(connection, tables.cell_mappings, cells)
