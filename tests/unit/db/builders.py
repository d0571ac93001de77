"""Objects with everything in them that a row needs."""

import datetime
import uuid
from typing import Any

import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from scheduler import objects
from scheduler.db import rows, tables
from scheduler.db.database import Database
from scheduler.db.migrations import VERSION_TABLE

NOW = datetime.datetime(2026, 11, 21, 12, 0, 0)


def flavor(**changes: Any) -> objects.Flavor:
    values = {"name": "big", "memory_mb": 1024, "vcpus": 2, "root_gb": 10, "flavorid": "77"}
    return objects.Flavor(**{**values, **changes})


def instance(**changes: Any) -> objects.Instance:
    values: dict[str, Any] = {
        "uuid": str(uuid.uuid4()),
        "project_id": "project",
        "user_id": "user",
        "memory_mb": 1024,
        "vcpus": 2,
        "root_gb": 10,
        "ephemeral_gb": 0,
        "vm_state": "building",
        "task_state": "scheduling",
        "flavor": flavor(),
    }
    return objects.Instance(**{**values, **changes})


def node_values(**changes: Any) -> dict[str, Any]:
    values = {
        "vcpus": 8,
        "memory_mb": 16384,
        "local_gb": 100,
        "hypervisor_type": "QEMU",
        "hypervisor_version": 7002000,
    }
    return {**values, **changes}


def columns(conn: sa.Connection, table: sa.Table, **criteria: Any) -> list[dict[str, Any]]:
    """Whole rows as they stand, deleted ones included, in the order of the ids."""
    query = sa.select(table).order_by(table.c.id)
    for name, value in criteria.items():
        query = query.where(table.c[name] == value)
    return [dict(row) for row in conn.execute(query).mappings()]


def age(conn: sa.Connection, table: sa.Table) -> None:
    """Make rows look as if nobody touched them for long, to see which ones a call touches."""
    long_ago = NOW - datetime.timedelta(days=400)
    conn.execute(sa.update(table).values(created_at=long_ago, updated_at=long_ago))


def is_fresh(moment: datetime.datetime | None) -> bool:
    """Whether *moment* was written by this test."""
    now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    return moment is not None and abs(now - moment) < datetime.timedelta(minutes=5)


def schema_differences(database: Database) -> list[Any]:
    """What a migration would have to change for the database to be as its tables say."""
    with database.read() as connection:
        context = MigrationContext.configure(
            connection, opts={"version_table": VERSION_TABLE, "compare_type": True}
        )
        return compare_metadata(context, tables.metadata)


def delete_host(conn: sa.Connection, host: str) -> None:
    """Soft-delete services and compute nodes of *host*, as Nova does."""
    for table in (tables.services, tables.compute_nodes):
        living = (table.c.host == host, table.c.deleted == 0)
        rows.update(conn, table, *living, deleted=table.c.id, deleted_at=rows.utcnow())


#: Queries for the names of triggers, and with PostgreSQL their tables.
TRIGGERS = {
    "sqlite": "SELECT name, '' FROM sqlite_master WHERE type = 'trigger'",
    "mysql": "SELECT trigger_name, '' FROM information_schema.triggers "
    "WHERE trigger_schema = DATABASE()",
    "postgresql": "SELECT tgname, 'ON ' || tgrelid::regclass FROM pg_trigger "
    "WHERE NOT tgisinternal",
}


def without_triggers(database: Database) -> None:
    """Make the tables of *database* such as Nova's: nothing tells of changes."""
    with database.write() as connection:
        for name, table in connection.exec_driver_sql(TRIGGERS[database.dialect_name]).all():
            connection.exec_driver_sql(f"DROP TRIGGER {name} {table}")
        connection.execute(tables.changes.delete())
