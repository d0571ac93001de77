"""A worker's state in numbers, and read again."""

import pytest
import sqlalchemy

from scheduler import errors
from scheduler.claims.reader import utc
from scheduler.db.tables import compute_nodes
from scheduler.introspection import state
from tests.unit.introspection.subjects import a_world
from tests.world import fleet
from tests.world.fleet import a_spec


@pytest.fixture
def world(tmp_path):
    with a_world(tmp_path, hosts=5) as made:
        yield made


def place(world, uuid, **fields):
    """Have the worker promise a host to a server."""
    spec = a_spec(uuid, **fields)
    world.subject.manager.select_destinations(None, spec_obj=spec, instance_uuids=[uuid])


def behind_the_back(world, host, **values):
    """Change a row such that no read of changes can tell."""
    update = sqlalchemy.update(compute_nodes).where(compute_nodes.c.host == host)
    with world.database.write() as connection:
        connection.execute(update.values(**values))


def test_numbers_follow_what_the_worker_knows_and_promises(world):
    names = ("hosts", "up", "disabled", "open_picks")
    before = state.state_summary(world.subject)
    place(world, "u1")
    after = state.state_summary(world.subject)
    assert [before[name] for name in names] == [5, 5, 0, 0]
    assert [after[name] for name in names] == [5, 5, 0, 1]
    assert after["instances"] == before["instances"] + 1
    assert 0 <= after["state_age_seconds"] < 60


def test_a_full_read_says_what_it_repaired(world):
    place(world, "u1")
    untouched = state.state_refresh(world.subject)
    assert (untouched["repaired"], untouched["repairs"]) == (0, [])
    table = world.subject.host_manager.table
    table.update(table.rows["cmp2", "cmp2"], {"total_usable_ram_mb": 1})
    table.remove(("cmp3", "cmp3"))
    answer = state.state_refresh(world.subject)
    told = {(each["host"], each["column"]): each["database"] for each in answer["repairs"]}
    assert told == {("cmp2", "total_usable_ram_mb"): fleet.MEMORY_MB, ("cmp3", "(host)"): "present"}
    assert (answer["repaired"], answer["hosts"]) == (2, 5)
    assert state.state_refresh(world.subject)["repaired"] == 0


def test_what_is_reported_between_its_reads_was_not_missed(world, monkeypatch):
    manager = world.subject.host_manager
    read = manager.refresh_everything

    def report_and_read():
        for host, seconds in (("cmp2", 0.0), ("cmp3", -60.0)):
            when = utc(manager.clock() + seconds)
            behind_the_back(world, host, memory_mb=1, updated_at=when)
        read()

    monkeypatch.setattr(manager, "refresh_everything", report_and_read)
    answer = state.state_refresh(world.subject)
    assert {each["host"] for each in answer["repairs"]} == {"cmp3"}


def test_no_state_is_read_while_the_database_is_away(world, monkeypatch):
    manager = world.subject.host_manager

    def fail(*_given, **_how):
        raise sqlalchemy.exc.OperationalError("select", {}, Exception("away"))

    monkeypatch.setattr(manager._reader, "read", fail)
    with pytest.raises(errors.StateUnavailable, match="does not answer"):
        state.state_refresh(world.subject)
