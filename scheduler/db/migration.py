"""Creation and upgrade of the tables, and the check that they are up to date.

A database that a real Nova made is never changed here (reference page database, section 10).
Triggers of a new one count what leaves no timestamp behind: a row that was deleted for good, or a
host taken out of an aggregate.  Heartbeats and reports move no counter, so no writer waits.
"""

import pathlib
from collections.abc import Iterable

import sqlalchemy
from alembic import command, util
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from oslo_db import exception as db_exception
from oslo_log import log as logging
from sqlalchemy import Connection

from scheduler import errors
from scheduler.db import flavors, rows, tables
from scheduler.db.database import Database
from scheduler.db.databases import CELL0_UUID
from scheduler.db.layout import NEEDED_TABLES, NOVA_VERSION_TABLES
from scheduler.db.migrations import VERSION_TABLE

LOG = logging.getLogger(__name__)

SYNC_COMMAND = "nova-scheduler-manage db sync"
#: name, memory in MB, vCPUs, root disk in GB; the flavorid is the place in this list.
_FLAVORS = (
    ("m1.tiny", 512, 1, 1),
    ("m1.small", 2048, 1, 20),
    ("m1.medium", 4096, 2, 40),
    ("m1.large", 8192, 4, 80),
    ("m1.xlarge", 16384, 8, 160),
)

_COUNTERS = ("compute_nodes", "services", "instances", "aggregates")
_COUNT = "UPDATE change_counters SET value = value + 1 WHERE name = '{counter}'"
_POSTGRESQL_FUNCTION = f"""
CREATE FUNCTION nova_scheduler_count() RETURNS trigger AS $$
BEGIN
    {_COUNT.replace("'{counter}'", "TG_ARGV[0]")};
    RETURN NULL;
END $$ LANGUAGE plpgsql
"""


def sync(database: Database, revision: str = "head") -> None:
    """Create or upgrade the tables up to *revision*; nothing happens when they are there.

    Raises DatabaseNotReady for a real Nova's database, which is its own tools' to change, and
    for a *revision* that does not exist.
    """
    if database.is_embedded_default and database.url.database:
        pathlib.Path(database.url.database).parent.mkdir(parents=True, exist_ok=True)
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


_DIFFERS = {
    "mysql": "NOT (OLD.`{0}` <=> NEW.`{0}`)",
    "sqlite": "OLD.{0} IS NOT NEW.{0}",
    "postgresql": "OLD.{0} IS DISTINCT FROM NEW.{0}",
}
_SERVICE_COLUMNS = ("host", "binary", "topic", "deleted")


def _triggers(dialect_name: str) -> dict[str, str]:
    """By name the statements that create the triggers."""
    is_living = "OLD.deleted = 0"
    is_renamed = " OR ".join(_DIFFERS[dialect_name].format(each) for each in _SERVICE_COLUMNS)
    wanted = [
        ("compute_nodes", "DELETE", "compute_nodes", is_living),
        ("instances", "DELETE", "instances", is_living),
        ("services", "INSERT", "services", None),
        ("services", "DELETE", "services", None),
        ("services", "UPDATE", "services", is_renamed),
    ]
    for table in ("aggregates", "aggregate_hosts", "aggregate_metadata"):
        wanted += [(table, each, "aggregates", None) for each in ("INSERT", "DELETE", "UPDATE")]
    found = {}
    for table, event, counter, condition in wanted:
        name, count = f"count_{table}_{event.lower()}", _COUNT.format(counter=counter)
        when = f"WHEN ({condition}) " if condition else ""
        body = {
            "mysql": f"IF {condition} THEN {count}; END IF" if condition else count,
            "sqlite": f"{when}BEGIN {count}; END",
            "postgresql": f"{when}EXECUTE FUNCTION nova_scheduler_count('{counter}')",
        }[dialect_name]
        found[name] = f"CREATE TRIGGER {name} AFTER {event} ON {table} FOR EACH ROW {body}"
    return found


def _create_triggers(connection: Connection) -> bool:
    """Create them; False, with a warning, where the server does not let this user."""
    dialect_name = connection.dialect.name
    triggers = _triggers(dialect_name)
    try:
        if dialect_name == "postgresql":
            connection.exec_driver_sql(_POSTGRESQL_FUNCTION)
        for statement in triggers.values():
            connection.exec_driver_sql(statement)
    except db_exception.DBError as error:
        # MySQL and MariaDB with a binary log want more rights for triggers than for tables; their
        # DDL is not part of the transaction, so it can go on.
        if dialect_name != "mysql":
            raise
        LOG.warning("No triggers can be created, so reads will count rows instead: %s", error)
        for name in triggers:
            connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {name}")
        return False
    return True


def _create_all(connection: Connection) -> None:
    """Create everything in a database without tables."""
    tables.metadata.create_all(connection)
    if _create_triggers(connection):
        counters = [{"name": name, "value": 0} for name in _COUNTERS]
        connection.execute(tables.change_counters.insert(), counters)
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
