"""Where nothing has happened since the last poll, one statement shows that nothing has."""

import datetime
import time

import pytest
import sqlalchemy as sa

from scheduler.db import compute_nodes, services
from scheduler.db.fleet import FleetReader
from scheduler.db.tables import change_counters
from tests.unit.hosts.reading import a_manager, change, value

#: More than the first read looks back.
LULL_SECONDS = 3600
#: More than any other one does, and less than there is between two full reads.
SHORT_LULL_SECONDS = 100


class Clock:
    """Time that passes when it is told to: heartbeats are due when that is wanted."""

    def __init__(self):
        self.now = time.time()

    def __call__(self):
        return self.now

    def utc(self):
        return datetime.datetime.fromtimestamp(int(self.now), datetime.UTC).replace(tzinfo=None)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(params=[True, False], ids=["counted", "of Nova"])
def at_rest(request, database, clock):
    """A manager that was asked for a while after anything had happened, and its statements."""
    if not request.param:
        with database.write() as connection:
            connection.execute(change_counters.delete())
    manager = a_manager(database, clock)
    for _ in range(3):
        clock.now += LULL_SECONDS
        manager.refresh()
    asked = []
    sa.event.listen(
        database.engine,
        "before_cursor_execute",
        lambda _conn, _cursor, statement, *_others: asked.append(statement),
    )
    return manager, asked


def test_one_statement_is_enough(at_rest):
    manager, asked = at_rest
    manager.refresh()
    manager.refresh()
    assert len([each for each in asked if each.startswith("SELECT")]) == 2


def test_heartbeats_that_are_due_are_read(at_rest, database, clock):
    manager, _asked = at_rest
    clock.now += SHORT_LULL_SECONDS
    change(database, services.heartbeat_many, [2], clock.utc())
    manager.refresh()
    assert (
        value(manager, "h2", "service_last_seen")
        == clock.utc().replace(tzinfo=datetime.UTC).timestamp()
    )


@pytest.mark.parametrize("stamped_ago_seconds", [0, 30])
def test_reports_with_the_same_timestamp_are_seen(at_rest, database, clock, stamped_ago_seconds):
    manager, _asked = at_rest
    manager.refresh()
    when = clock.utc() - datetime.timedelta(seconds=stamped_ago_seconds)
    for free_ram_mb in (100, 200):
        change(database, compute_nodes.update_usage, 2, {"free_ram_mb": free_ram_mb}, when)
        manager.refresh()
        assert value(manager, "h2", "free_ram_mb") == free_ram_mb


def test_a_service_that_is_switched_off_is_seen(at_rest, database):
    manager, _asked = at_rest
    change(database, services.set_disabled, "h2", "nova-compute", True, "maintenance")
    manager.refresh()
    assert value(manager, "h2", "service_disabled")


def test_a_row_that_left_a_short_overlap_is_read_no_more(database, clock):
    reader = FleetReader(database, datetime.timedelta(seconds=1), clock=clock)
    list(reader.read(clock.utc())[0].nodes)
    change(database, compute_nodes.update_usage, 2, {"free_ram_mb": 100}, clock.utc())
    found = []
    for _second in range(8):
        found.append([row.host for row in reader.read(clock.utc())[0].nodes])
        clock.now += 1
    assert found == [["h2"], *[[]] * 7]
