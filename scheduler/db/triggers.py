"""Triggers of this project's own tables: each change of a row appends an entry to ``changes``.

A heartbeat or the removal of a row that was deleted before appends none.
"""

from typing import Any, Final

import sqlalchemy as sa
from oslo_db import exception as db_exception
from oslo_log import log as logging

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


def create(connection: sa.Connection) -> None:
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
