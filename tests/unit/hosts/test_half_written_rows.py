"""Rows of every table that say nothing or nonsense: the others are decided on all the same."""

import datetime
import math

import pytest
import sqlalchemy as sa

from scheduler.db import aggregates, inspection, tables
from scheduler.db.databases import Databases
from scheduler.hosts import capacity
from tests.unit.claims.fleets import Fleet, Worker
from tests.unit.hosts.reading import Clock

pytestmark = pytest.mark.slow

FILTERS = (
    *("ComputeFilter", "AvailabilityZoneFilter", "RamFilter", "AggregateInstanceExtraSpecsFilter"),
    *("NUMATopologyFilter", "PciPassthroughFilter", "ImagePropertiesFilter"),
    *("ComputeCapabilitiesFilter", "ServerGroupAntiAffinityFilter"),
)
VICTIM = "h1"
BAD_TEXTS = ("", "[[", '{"nova_object.name": 1}', "[1]")
BAD_NUMBERS = (-1, 2**31 - 1, "many", math.inf)
BAD_TIMES = (datetime.datetime.min, datetime.datetime.max, "of old", "5")
READ = (
    *("aggregate_hosts", "aggregate_metadata", "aggregates", "changes", "claim_hosts"),
    *("claims", "compute_nodes", "instances", "services"),
)


@pytest.fixture
def database(synced_database):
    return synced_database


@pytest.fixture
def worker(database):
    clock = Clock()
    fleet = Fleet(database, clock, hosts=3)
    worker = Worker(database, clock, filters=FILTERS)
    with database.write() as conn:
        aggregates.create(conn, "zone", metadata={"availability_zone": "z"}, hosts=[VICTIM])
        server = {"uuid": "i1", "memory_mb": 1, "host": VICTIM, "node": VICTIM, "deleted": 0}
        conn.execute(tables.instances.insert().values(**server, created_at=fleet.now()))
    worker.select("req-before", 1, "before")
    yield worker
    worker.database.dispose()


#: Tables whose rows a decision makes again where they are missing, and the columns of their keys.
MADE_AGAIN = {"claim_hosts": "host", "claims": "consumer_uuid"}


def bad_values(column):
    """What may be in the column although nobody meant it."""
    if column.primary_key or column.foreign_keys or column.name == "uuid":  # others refer to it
        return []
    found = [None] if column.nullable else []
    if isinstance(column.type, sa.String):
        return [*found, *BAD_TEXTS]
    if isinstance(column.type, sa.DateTime):
        return [*found, *BAD_TIMES]
    return found if isinstance(column.type, sa.Boolean) else [*found, *BAD_NUMBERS]


def spoilt(table):
    """Rows of nothing but bad values, until each value was there once."""
    of_column = {column.name: bad_values(column) for column in table.c}
    longest = max(map(len, of_column.values()))
    return [
        {name: values[number % len(values)] for name, values in of_column.items() if values}
        for number in range(longest)
    ]


@pytest.mark.parametrize("name", READ)
def test_other_hosts_are_decided_on(database, worker, name):
    table = tables.metadata.tables[name]
    (key,) = list(table.primary_key.columns)[:1]
    with database.read() as conn:
        row = conn.execute(sa.select(table).order_by(key)).mappings().first()
    assert row is not None, "a row to spoil"
    spoilt_rows = spoilt(table)
    # Readers that look for what was touched of late are to see it as well.
    touched = datetime.datetime.now(datetime.UTC).replace(tzinfo=None, microsecond=0)
    stamp = {"updated_at": touched} if "updated_at" in table.c else {}
    rows = [(values, True) for values in spoilt_rows]
    for values, full in (*rows, *(({**values, **stamp}, False) for values in spoilt_rows)):
        change(database, table, key == row[key.name], values)
        answer(worker, f"{name} {values}, {full}", full=full)
        if name in MADE_AGAIN:
            again = table.c[MADE_AGAIN[name]] == row[MADE_AGAIN[name]]
            with database.write() as conn:
                conn.execute(table.delete().where(again, key != row[key.name]))
        change(database, table, key == row[key.name], dict(row))
    assert answer(worker, "all is well again", full=True) in {"h1", "h2", "h3"}


#: Columns of a compute node, each with what none can be built by.  SQLite keeps texts anywhere.
INCOMPLETE = (
    *(("host", None), ("hypervisor_hostname", None), ("uuid", None)),
    *(("memory_mb", "plenty"), ("free_disk_gb", "much"), ("disk_available_least", b"1")),
    *(("created_at", "of old"), ("updated_at", "2026-13-01 00:00:00")),
    *(("hypervisor_version", "v"), ("cpu_allocation_ratio", math.inf)),
    *(("ram_allocation_ratio", -math.inf), ("disk_allocation_ratio", "1,5")),
)


@pytest.mark.parametrize(("name", "value"), INCOMPLETE)
def test_a_compute_node_that_lacks_a_name_or_number_is_no_candidate(
    database, worker, caplog, name, value
):
    """Nor an alternate; it is counted until it is whole or gone, and named once."""
    table = tables.compute_nodes
    with database.read() as conn:
        row = conn.execute(sa.select(table).where(table.c.host == VICTIM)).mappings().one()

    def count_after(**values):
        change(database, table, table.c.id == row["id"], values)
        worker.manager._full_at = None
        worker.manager.refresh()
        return capacity.host_states(worker.manager.table, 0.0, 60.0)["incomplete"]

    assert count_after(**{name: value}) == count_after(vcpus=1) == 1
    (found,) = inspection.configured(Databases(database))
    assert found.incomplete == 1
    (warning,) = [each for each in caplog.messages if "lacks host, name or uuid, or a " in each]
    assert warning.endswith("h1")
    for number in range(4):
        selections = worker.select(f"req-{number}", 0, f"i-{number}", return_alternates=True)
        assert {each.service_host for each in selections[0]} == {"h2", "h3"}
    assert count_after(**dict(row)) == 0
    assert count_after(**{name: value}) == 1
    assert count_after(deleted=row["id"]) == 0


@pytest.mark.parametrize("name", ["created_at", "updated_at", "deleted_at", "last_seen_up"])
def test_a_service_with_a_text_as_a_time_hides_no_other_host(database, worker, name):
    change(database, tables.services, tables.services.c.host == VICTIM, {name: "of old"})
    hosts = {answer(worker, f"{name}, {number}", full=True) for number in range(12)}
    assert hosts == {"h1", "h2", "h3"} - ({VICTIM} if name == "last_seen_up" else set())


def change(database, table, which, values):
    """As a driver takes the *values*, of whatever type: SQLAlchemy refuses texts as numbers."""
    raw = {k: sa.literal(v, sa.Text()) if isinstance(v, str) else v for k, v in values.items()}
    with database.write() as conn:
        conn.execute(table.update().where(which).values(**raw))


def answer(worker, what, *, full):
    """The host for one more small server; fails if the state cannot be read."""
    if full:
        worker.manager._full_at = None
    worker.manager.refresh()
    assert not worker.manager.is_failing, what
    ((selection, *_alternates),) = worker.select(f"req-{what}", 0, what)
    return selection.service_host
