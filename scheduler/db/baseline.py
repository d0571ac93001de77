"""Tables of a new database: all of :mod:`scheduler.db.tables`, the triggers, the first rows.

The triggers count what leaves no timestamp behind: a row that was deleted for good, or a host taken
out of an aggregate.  Heartbeats and reports move no counter, so no writer waits for another.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from oslo_db import exception as db_exception
from oslo_log import log as logging
from sqlalchemy import Connection

from scheduler.db import flavors, rows, tables
from scheduler.db.mappings import CELL0_UUID

LOG = logging.getLogger(__name__)

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


@dataclass(frozen=True)
class _Trigger:
    """Moves *counter* after each *event* on a row of *table*.

    An update counts if one of *columns* changed; a deletion of a living row only, if *living*.
    """

    table: str
    event: str
    counter: str
    columns: tuple[str, ...] = ()
    living: bool = False

    @property
    def name(self) -> str:
        return f"count_{self.table}_{self.event.lower()}"

    def statement(self, dialect_name: str) -> str:
        """The statement that creates it."""
        head = f"CREATE TRIGGER {self.name} AFTER {self.event} ON {self.table} FOR EACH ROW"
        condition = self._condition(dialect_name)
        count = _COUNT.format(counter=self.counter)
        if dialect_name == "mysql":
            body = f"IF {condition} THEN {count}; END IF" if condition else count
            return f"{head} {body}"
        when = f" WHEN ({condition})" if condition else ""
        if dialect_name == "sqlite":
            return f"{head}{when} BEGIN {count}; END"
        return f"{head}{when} EXECUTE FUNCTION nova_scheduler_count('{self.counter}')"

    def _condition(self, dialect_name: str) -> str:
        if self.living:
            return "OLD.deleted = 0"
        different = {
            "mysql": "NOT (OLD.{0} <=> NEW.{0})",
            "sqlite": "OLD.{0} IS NOT NEW.{0}",
            "postgresql": "OLD.{0} IS DISTINCT FROM NEW.{0}",
        }[dialect_name]
        quoted = (f"`{name}`" if dialect_name == "mysql" else name for name in self.columns)
        return " OR ".join(different.format(name) for name in quoted)


def _triggers() -> Iterator[_Trigger]:
    yield _Trigger("compute_nodes", "DELETE", "compute_nodes", living=True)
    yield _Trigger("instances", "DELETE", "instances", living=True)
    yield _Trigger("services", "INSERT", "services")
    yield _Trigger("services", "DELETE", "services")
    yield _Trigger("services", "UPDATE", "services", ("host", "binary", "topic", "deleted"))
    for table in ("aggregates", "aggregate_hosts", "aggregate_metadata"):
        for event in ("INSERT", "DELETE", "UPDATE"):
            yield _Trigger(table, event, "aggregates")


def _create_triggers(connection: Connection) -> bool:
    """Create them; False, with a warning, where the server does not let this user."""
    dialect_name = connection.dialect.name
    try:
        if dialect_name == "postgresql":
            connection.exec_driver_sql(_POSTGRESQL_FUNCTION)
        for trigger in _triggers():
            connection.exec_driver_sql(trigger.statement(dialect_name))
    except db_exception.DBError as error:
        # MySQL and MariaDB with a binary log want more rights for triggers than for tables; their
        # DDL is not part of the transaction, so it can go on.
        if dialect_name != "mysql":
            raise
        LOG.warning("No triggers can be created, so reads will count rows instead: %s", error)
        for trigger in _triggers():
            connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {trigger.name}")
        return False
    return True


def create_all(connection: Connection) -> None:
    """Create everything in a database without tables."""
    tables.metadata.create_all(connection)
    if _create_triggers(connection):
        counters = [{"name": name, "value": 0} for name in _COUNTERS]
        connection.execute(tables.change_counters.insert(), counters)
    rows.insert_many(connection, tables.flavors, _flavor_rows())
    cells: list[dict[str, object]] = [
        {"uuid": CELL0_UUID, "name": "cell0", "transport_url": "none:///", "disabled": False},
        # No URL: the cell is where this process is connected to.
        {"uuid": str(uuid.uuid4()), "name": "cell1", "transport_url": None, "disabled": False},
    ]
    rows.insert_many(connection, tables.cell_mappings, cells)


def _flavor_rows() -> list[dict[str, object]]:
    names = ("name", "memory_mb", "vcpus", "root_gb")
    return [
        {**flavors.DEFAULTS, **dict(zip(names, row, strict=True)), "flavorid": str(number)}
        for number, row in enumerate(_FLAVORS, start=1)
    ]
