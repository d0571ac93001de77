"""Creation and upgrade of tables and triggers, and the check that they are up to date.

A database that a real Nova made is never changed here (reference page database, section 10).
By triggers each change of a row appends an entry to ``changes``.  A heartbeat or the removal of a
row that was deleted before appends none.
"""

import importlib
import pathlib
from collections.abc import Iterable
from typing import Any, Final

import sqlalchemy as sa
from oslo_db import exception as db_exception
from oslo_log import log as logging
from sqlalchemy import Connection

from scheduler import errors
from scheduler.db import flavors, rows, tables
from scheduler.db.database import Database
from scheduler.db.databases import CELL0_UUID
from scheduler.db.layout import NEEDED_TABLES, NOVA_VERSION_TABLES
from scheduler.db.migrations import VERSION_TABLE, versions
from scheduler.db.tables import changes

LOG = logging.getLogger(__name__)

#: The time of the server, naive UTC.
NOW: Final = {
    "mysql": "UTC_TIMESTAMP()",
    "postgresql": "timezone('utc', clock_timestamp())",
    "sqlite": "datetime('now')",
}
_DIFFERS: Final = {
    "mysql": "NOT (OLD.`{0}` <=> NEW.`{0}`)",
    "postgresql": "OLD.{0} IS DISTINCT FROM NEW.{0}",
    "sqlite": "OLD.{0} IS NOT NEW.{0}",
}
_ENTRY: Final = "INSERT INTO changes (kind, row_id, changed_at) VALUES ({kind}, {row}, {now})"
_FUNCTION: Final = """
CREATE FUNCTION nova_scheduler_change() RETURNS trigger AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN NEW := OLD; END IF;
    {entry};
    RETURN NULL;
END $$ LANGUAGE plpgsql
"""
_LIVED: Final = "OLD.deleted = 0"
#: Columns whose change is that of a service's name, and of its flags.  Not here: heartbeats, and
#: the version, which is read with these.
_NAMES: Final = ("host", "binary", "topic", "deleted")
_FLAGS: Final = ("disabled", "forced_down", "disabled_reason")
SYNC_COMMAND = "nova-scheduler-manage db sync"
#: name, memory in MB, vCPUs, root disk in GB; the flavorid is the place in this list.
_FLAVORS = (
    ("m1.tiny", 512, 1, 1),
    ("m1.small", 2048, 1, 20),
    ("m1.medium", 4096, 2, 40),
    ("m1.large", 8192, 4, 80),
    ("m1.xlarge", 16384, 8, 160),
)


def _wanted(dialect_name: str) -> list[tuple[str, str, str, str | None]]:
    """Table, event, kind of entry and condition of each trigger."""
    renamed, flagged = (
        " OR ".join(_DIFFERS[dialect_name].format(each) for each in names)
        for names in (_NAMES, _FLAGS)
    )
    wanted: list[tuple[str, str, str, str | None]] = [
        ("services", "INSERT", "services", None),
        ("services", "DELETE", "services", None),
        ("services", "UPDATE", "services", renamed),
        ("services", "UPDATE", "service_flags", flagged),
    ]
    for table in ("compute_nodes", "instances"):
        wanted += [(table, event, table, None) for event in ("INSERT", "UPDATE")]
        wanted.append((table, "DELETE", table, _LIVED))
    for table in ("aggregates", "aggregate_hosts", "aggregate_metadata"):
        wanted += [(table, each, "aggregates", None) for each in ("INSERT", "UPDATE", "DELETE")]
    return wanted


def create_triggers(connection: sa.Connection) -> None:
    """Create them, and append the first entry, which shows that they are there.

    Where the server does not let this user, there are none, and a warning.
    """
    name = connection.dialect.name
    made = []
    try:
        if name == "postgresql":
            entry = _ENTRY.format(kind="TG_ARGV[0]", row="NEW.id", now=NOW[name])
            connection.exec_driver_sql(_FUNCTION.format(entry=entry))
        for table, event, kind, condition in _wanted(name):
            trigger = f"{kind}_of_{table}_{event.lower()}"
            body = _body(name, event, kind, condition)
            connection.exec_driver_sql(
                f"CREATE TRIGGER {trigger} AFTER {event} ON {table} FOR EACH ROW {body}"
            )
            made.append(trigger)
    except db_exception.DBError as error:
        # MySQL and MariaDB with a binary log want more rights for triggers than for tables; their
        # DDL is not part of the transaction, so it can go on.
        if name != "mysql":
            raise
        LOG.warning("No triggers can be created, so reads will compare timestamps: %s", error)
        for trigger in made:
            connection.exec_driver_sql(f"DROP TRIGGER {trigger}")
        return
    now: sa.ColumnClause[Any] = sa.literal_column(NOW[name])
    connection.execute(changes.insert().values(kind="created", row_id=0, changed_at=now))


def _body(dialect_name: str, event: str, kind: str, condition: str | None) -> str:
    when = f"WHEN ({condition}) " if condition else ""
    if dialect_name == "postgresql":
        return f"{when}EXECUTE FUNCTION nova_scheduler_change('{kind}')"
    row = "OLD.id" if event == "DELETE" else "NEW.id"
    entry = _ENTRY.format(kind=f"'{kind}'", row=row, now=NOW[dialect_name])
    if dialect_name == "sqlite":
        return f"{when}BEGIN {entry}; END"
    return f"IF {condition} THEN {entry}; END IF" if condition else entry


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
        inspector = sa.inspect(connection)
        for foreign in filter(inspector.has_table, NOVA_VERSION_TABLES):
            raise errors.DatabaseNotReady(
                reason=f"{database.masked_url} has the table {foreign}, so it is a real Nova's: "
                "use nova-manage to create or upgrade its tables"
            )
        # Loaded here: it takes long, and only who changes tables needs it.
        command = importlib.import_module("alembic.command")
        config = importlib.import_module("alembic.config").Config()
        config.set_main_option("script_location", "scheduler.db:migrations")
        config.attributes["connection"] = connection
        try:
            if revision_of(connection) is None and revision in ("head", head()):
                _create_all(connection)
                command.stamp(config, "head")
            else:
                command.upgrade(config, revision)
        except command.util.CommandError as error:
            raise errors.DatabaseNotReady(reason=str(error)) from error


def version(database: Database) -> str | None:
    """The revision that the tables are at; None when :func:`sync` has never run."""
    if _is_absent(database):
        return None
    with database.read() as connection:
        return revision_of(connection)


def revision_of(connection: Connection, table: str = VERSION_TABLE) -> str | None:
    """The revision that *table*, ours or Nova's, says; None without it."""
    if not sa.inspect(connection).has_table(table):
        return None
    column: sa.ColumnClause[str] = sa.column(NOVA_VERSION_TABLES.get(table, "version_num"))
    found = connection.scalar(sa.select(column).select_from(sa.table(table)))
    return None if found is None else str(found)


def head() -> str:
    scripts = pathlib.Path(versions.__path__[0]).glob("[0-9]*_*.py")
    return max(script.name for script in scripts).partition("_")[0]


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
        found = revision_of(connection)
        lost = tables.metadata.tables.keys() - sa.inspect(connection).get_table_names()
    layout = database.layout
    if found is None and layout.is_nova:
        lacking = [table for table in needed if not layout.has(table)]
        return f"{url} is a Nova database without {', '.join(lacking)}" if lacking else None
    if found is None:
        return f"{url} has no tables; create them with: {SYNC_COMMAND}"
    if found == head():
        return f"{url} has lost {', '.join(sorted(lost))}; restore them" if lost else None
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


def _create_all(connection: Connection) -> None:
    tables.metadata.create_all(connection)
    create_triggers(connection)
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
