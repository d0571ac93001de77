import datetime
import pathlib

import pytest
import sqlalchemy as sa
from alembic import operations
from alembic.migration import MigrationContext

from scheduler import errors
from scheduler.db import aggregates, layout, migration, tables
from scheduler.db.database import Database
from scheduler.db.fleet import FleetReader
from tests.unit.db.builders import NOW, columns, schema_differences, without_triggers


@pytest.fixture
def empty(tmp_path: pathlib.Path) -> Database:
    return Database(f"sqlite:///{tmp_path}/empty.sqlite")


def run(database: Database, *statements: str) -> None:
    with database.write() as conn:
        for statement in statements:
            conn.exec_driver_sql(statement)


def test_second_sync_leaves_the_rows_alone(database):
    with database.write() as conn:
        conn.execute(tables.flavors.delete().where(tables.flavors.c.name == "m1.tiny"))
    migration.sync(database)
    with database.read() as conn:
        assert len(columns(conn, tables.flavors)) == 4


@pytest.mark.parametrize("revision", ["head", migration.head()])
def test_sync_to_a_revision(empty, revision):
    with pytest.raises(errors.DatabaseNotReady, match="does not exist.*db sync"):
        migration.check_ready(empty)
    assert migration.version(empty) is None
    assert not pathlib.Path(str(empty.url.database)).exists()
    for _ in range(2):
        migration.sync(empty, revision)
        assert migration.version(empty) == migration.head()
    migration.check_ready(empty)
    assert schema_differences(empty) == []


def test_sync_makes_the_folder_of_the_embedded_default(tmp_path):
    url = f"sqlite:///{tmp_path}/a/b/nova.sqlite"
    migration.sync(Database(url, is_embedded_default=True))
    migration.check_ready(Database(url))


@pytest.mark.parametrize("name", ["alembic_version", "migrate_version"])
def test_sync_refuses_a_real_nova(empty, name):
    run(empty, f"CREATE TABLE {name} (version_num VARCHAR(32))")
    with pytest.raises(errors.DatabaseNotReady, match=f"{name}.*nova-manage"):
        migration.sync(empty)
    with empty.read() as conn:
        assert sa.inspect(conn).get_table_names() == [name]


NOVA_TABLES = [
    "CREATE TABLE alembic_version (version_num VARCHAR(32))",
    *(f"CREATE TABLE {name} (id INTEGER)" for name in layout.NEEDED_TABLES),
]


def test_real_nova_is_ready(empty):
    run(empty, *NOVA_TABLES)
    migration.check_ready(empty)


@pytest.mark.parametrize(
    ("statements", "reason"),
    [
        (["CREATE TABLE other (id INTEGER)"], "has no tables; create them with: nova-scheduler-m"),
        (NOVA_TABLES[:-1], "is a Nova database without instances"),
        (
            [
                "CREATE TABLE nova_scheduler_version (version_num VARCHAR(32))",
                "INSERT INTO nova_scheduler_version VALUES ('9999')",
            ],
            f"9999, {migration.head()} is needed; upgrade them with: .*db sync, or the program",
        ),
    ],
    ids=["something else", "half a Nova", "newer"],
)
def test_not_ready(empty, statements, reason):
    run(empty, *statements)
    with pytest.raises(errors.DatabaseNotReady, match=reason):
        migration.check_ready(empty)


#: A trigger of revision 0007, and what daemons of that version ask.
COUNT = "UPDATE change_counters SET value = value + 1 WHERE name = 'aggregates'"
COUNTING = {
    "sqlite": f"BEGIN {COUNT}; END",
    "mysql": COUNT,
    "postgresql": "EXECUTE FUNCTION nova_scheduler_count()",
}
FUNCTION = (
    f"CREATE FUNCTION nova_scheduler_count() RETURNS trigger AS $$ BEGIN {COUNT}; RETURN NULL; "
    "END $$ LANGUAGE plpgsql"
)
#: The type of a generation in that revision; SQLite does not tell.
NARROW = {
    "sqlite": [],
    "mysql": ["ALTER TABLE {} MODIFY generation INTEGER NOT NULL"],
    "postgresql": ["ALTER TABLE {} ALTER generation TYPE INTEGER"],
}
ANSWERS = "uniq_claims0consumer_uuid0request_id"
COUNTED = "SELECT value FROM change_counters WHERE name = 'aggregates'"


def name_consumers_once(database: Database) -> None:
    """Let each consumer have one claim, as until revision 0010."""
    with database.write() as conn:
        alter = operations.Operations(MigrationContext.configure(conn)).batch_alter_table
        with alter("claims", table_kwargs={"sqlite_autoincrement": True}) as claims:
            claims.drop_constraint(ANSWERS, type_="unique")
            claims.create_unique_constraint("uniq_claims0consumer_uuid", ["consumer_uuid"])


def test_daemons_of_the_version_before_go_on_through_an_upgrade(empty_url):
    database = Database(empty_url)
    migration.sync(database)
    without_triggers(database)
    name_consumers_once(database)
    name = database.dialect_name
    run(
        database,
        "DROP TABLE changes",
        "ALTER TABLE claims DROP COLUMN previous",
        *(each.format(table) for each in NARROW[name] for table in ("claims", "claim_hosts")),
        "CREATE TABLE change_counters (name VARCHAR(64) PRIMARY KEY, value BIGINT NOT NULL)",
        "INSERT INTO change_counters VALUES ('aggregates', 0)",
        *([FUNCTION, "DROP FUNCTION nova_scheduler_change()"] if name == "postgresql" else ()),
        "CREATE TRIGGER count_aggregates_insert AFTER INSERT ON aggregates FOR EACH ROW "
        + COUNTING[name],
        "UPDATE nova_scheduler_version SET version_num = '0007'",
    )
    with pytest.raises(errors.DatabaseNotReady, match="0007.*db sync"):
        migration.check_ready(database)
    before = Database(empty_url)
    with before.engine.connect() as daemon:
        assert daemon.exec_driver_sql(COUNTED).scalar() == 0
        daemon.commit()
        migration.sync(database)
        migration.check_ready(database)
        reader = FleetReader(database, datetime.timedelta(seconds=3))
        for _ in range(2):
            first = reader.read(NOW)
            list(first.nodes)
        with database.write() as conn:
            aggregates.create(conn, "new")
        found = reader.read(NOW)
        assert (first.full, found.full, found.aggregates[0].name) == (False, False, "new")
        assert daemon.exec_driver_sql(COUNTED).scalar() == 1
    ((change, table),) = schema_differences(database)
    assert (change, table.name) == ("remove_table", "change_counters")
    for each in (before, database):
        each.dispose()
