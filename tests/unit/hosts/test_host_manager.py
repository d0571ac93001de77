"""The host manager: refreshes, their cost, and what else drivers ask it.

That every kind of change is seen by the next refresh: test_interleaved_writers.
"""

import datetime
import gc
import logging
import time

import pytest
import sqlalchemy as sa
from oslo_db import exception as db_exception

from conductor_stub import server_rows
from conductor_stub.compute import registration
from scheduler import errors, objects
from scheduler.db import instances, rows, services, tables
from scheduler.db.fleet import FleetReader
from scheduler.db.fleet_poll import LOOK_BACK
from scheduler.db.heartbeats import HEARTBEAT_SECONDS, LATE_SECONDS
from scheduler.hosts import host_manager
from scheduler.hosts.host_manager import HostManager
from scheduler.hosts.host_state import Consumption
from scheduler.hosts.refresh import MISSED_AFTER_SECONDS
from tests.builders import a_conf, put_node
from tests.unit.db.builders import without_triggers
from tests.unit.hosts.reading import (
    NODE,
    a_manager,
    a_reader,
    candidates,
    change,
    row_of,
    value,
)

HOUR = datetime.timedelta(hours=1)
NODES = tables.compute_nodes


def test_a_row_emptied_by_its_host_keeps_its_numbers_and_its_reservations(manager, database):
    amount = Consumption(ram_mb=512, disk_mb=1024, vcpus=1)
    rows, names = [row_of(manager, "h2")], [("u1", None)]
    [made] = manager.reservations.reserve(rows, names, amount, manager.clock())
    change(database, put_node, "h2", "h2.example", {**NODE, "free_disk_gb": None})
    manager.refresh()
    assert value(manager, "h2", "free_ram_mb") == 7680 - 512
    manager.reservations.release(made)
    assert value(manager, "h2", "free_ram_mb") == 7680


@pytest.mark.parametrize("ahead_seconds", [0, HEARTBEAT_SECONDS, LATE_SECONDS])
def test_heartbeats_are_read_beside_the_requests_unless_they_are_late(
    manager, database, clock, ahead_seconds
):
    before = value(manager, "h2", "service_last_seen")
    beat = rows.utcnow() + datetime.timedelta(seconds=10)
    change(database, services.heartbeat, [2], beat)
    clock.ahead_seconds = ahead_seconds
    manager.refresh()
    assert (value(manager, "h2", "service_last_seen") > before) is (ahead_seconds == LATE_SECONDS)
    manager.read_beside()
    assert (value(manager, "h2", "service_last_seen") > before) is (ahead_seconds > 0)


def metadata_of(manager, host):
    return [dict(each.metadata) for each in value(manager, host, "aggregates")]


def test_aggregates_broadcast_count_at_once_and_the_database_corrects_them(manager):
    manager.update_aggregates(
        [objects.Aggregate(id=7, uuid="u", name="a", hosts=["h1"], metadata={"a": "1"})]
    )
    assert metadata_of(manager, "h1") == [{"a": "1"}]
    manager.delete_aggregate(objects.Aggregate(id=7))
    assert metadata_of(manager, "h1") == []


def properties_on(manager, host):
    return {
        uuid: set(instance.image_properties)
        for uuid, instance in manager.table.instances.get(host, {}).items()
    }


def test_images_of_instances_are_read_for_those_who_look_at_them(database, clock, manager):
    metadata = {"image_hw_vm_mode": "hvm", "image_base_image_ref": "i1", "owner": "x"}
    for uuid, own in (("u1", metadata), ("u2", {})):
        instance = objects.Instance(uuid=uuid, host="h1", vm_state="active", system_metadata=own)
        change(database, server_rows.create_instance, instance)
    known = {"u1": {("hw_vm_mode", "hvm")}, "u2": set()}

    conf = a_conf(image_props_weight_multiplier=1.0)
    looking = HostManager(conf, a_reader(conf, database), clock)
    looking.refresh()  # reads all
    assert properties_on(looking, "h1") == known
    change(database, instances.set_system_metadata, "u2", "image_os_type", "linux")
    change(database, instances.update, "u2", task_state="rebuilding")
    looking.refresh()  # reads what changed
    assert properties_on(looking, "h1") == known | {"u2": {("os_type", "linux")}}
    manager.refresh()
    assert properties_on(manager, "h1") == {"u1": set(), "u2": set()}


@pytest.mark.parametrize(("many", "is_set_aside"), [(3, True), (4, False)])
def test_a_large_fleet_is_kept_from_the_garbage_collector(
    database, clock, monkeypatch, many, is_set_aside
):
    monkeypatch.setattr(host_manager, "MANY_HOSTS", many)
    gc.unfreeze()  # what tests before this one set aside, which may be no more
    a_manager(database, clock).refresh()
    try:
        assert (gc.get_freeze_count() > 0) is is_set_aside
    finally:
        gc.unfreeze()


# --- where nothing has happened since the last poll ------------------------------------------


@pytest.fixture(params=[True, False], ids=["counted", "of Nova"])
def at_rest(request, database, clock):
    """A manager that was asked for a while after anything had happened, and its statements."""
    if not request.param:
        without_triggers(database)
    manager = a_manager(database, clock)
    for _ in range(3):
        clock.ahead_seconds += HOUR.total_seconds()  # more than the first read looks back
        manager.refresh()
    asked = []
    sa.event.listen(
        database.engine,
        "before_cursor_execute",
        lambda _conn, _cursor, statement, *_others: asked.append(statement),
    )
    return manager, asked


def test_one_statement_is_enough_and_one_for_aggregates_without_triggers(at_rest, request):
    manager, asked = at_rest
    for _ in range(2):
        manager.refresh()
    is_ours = "of Nova" not in request.node.name
    assert len([each for each in asked if each.startswith("SELECT")]) == (2 if is_ours else 4)


@pytest.mark.parametrize("stamped_ago_seconds", [0, 1])
def test_reports_with_the_same_timestamp_are_seen(at_rest, database, clock, stamped_ago_seconds):
    manager, _asked = at_rest
    when = datetime.datetime.fromtimestamp(int(clock() - stamped_ago_seconds), datetime.UTC)
    for free_ram_mb in (100, 200):
        numbers = {"free_ram_mb": free_ram_mb}
        change(database, registration.update_node, 2, numbers, when.replace(tzinfo=None))
        manager.refresh()
        assert value(manager, "h2", "free_ram_mb") == free_ram_mb


def test_a_row_that_left_a_short_overlap_is_read_no_more(database, clock):
    def now():
        return datetime.datetime.fromtimestamp(int(clock()), datetime.UTC).replace(tzinfo=None)

    reader = FleetReader(database, datetime.timedelta(seconds=1))
    list(reader.read(now()).nodes)
    change(database, registration.update_node, 2, {"free_ram_mb": 100}, now())
    found = []
    for _second in range(8):
        found.append([row.host for row in reader.read(now()).nodes])
        clock.ahead_seconds += 1
    assert found == [["h2"], *[[]] * 7]


# --- what is read beside the requests ---------------------------------------------------------


@pytest.fixture
def of_nova(database, clock, at_rest):
    """A manager of tables without counters, whose look back is due, and the costs of its reads."""
    without_triggers(database)
    manager, costs = a_manager(database, clock), []
    manager.refresh()
    manager.read_listeners.append(costs.append)
    clock.ahead_seconds += LOOK_BACK.total_seconds()
    return manager, costs


@pytest.mark.parametrize("ago_seconds", [0, 70, 110])
def test_a_row_that_is_committed_late_is_found_by_a_look_back(
    of_nova, database, clock, ago_seconds
):
    """The overlap is three seconds; the last look back was a minute ago."""
    manager, costs = of_nova
    when = datetime.datetime.fromtimestamp(int(clock() - ago_seconds), datetime.UTC)
    change(database, registration.update_node, 2, {"free_ram_mb": 9}, when.replace(tzinfo=None))
    for _second in range(3):
        manager.refresh()
        assert (value(manager, "h2", "free_ram_mb") == 9) is (not ago_seconds)
        clock.ahead_seconds += 0.1
    manager.read_beside()
    manager.refresh()
    assert value(manager, "h2", "free_ram_mb") == 9
    assert sum(cost.repairs for cost in costs) == bool(ago_seconds)
    assert not any(cost.full for cost in costs)
    clock.ahead_seconds += LOOK_BACK.total_seconds()
    manager.read_beside()
    manager.refresh()
    assert (costs[-1].rows, costs[-1].repairs) == (0, 0)


def test_a_compute_node_that_vanished_without_a_trace_is_missed_by_a_look_back(of_nova, database):
    manager, _costs = of_nova
    with database.write() as connection:
        connection.execute(sa.delete(NODES).where(NODES.c.host == "h2"))
    manager.refresh()
    assert candidates(manager) == ["h1", "h2", "h3"]
    manager.read_beside()
    manager.refresh()
    assert candidates(manager) == ["h1", "h3"]


def test_a_service_that_goes_without_its_host_is_seen_with_the_heartbeats(of_nova, database):
    manager, _costs = of_nova
    table = tables.services
    with database.write() as connection:
        connection.execute(sa.update(table).where(table.c.host == "h2").values(deleted=2))
    manager.read_beside()
    manager.refresh()
    assert "h2" not in manager.table.services


def test_heartbeats_change_no_flag_that_is_known_from_a_newer_read(manager, database, clock):
    """A host is enabled between the reading of its heartbeat and the taking of it."""
    change(database, services.change, "h2", "nova-compute", disabled=True)
    manager.refresh()
    clock.ahead_seconds = HEARTBEAT_SECONDS
    read_beside = manager._reader.read_beside

    def read_then_enable(now):
        found = read_beside(now)
        change(database, services.change, "h2", "nova-compute", disabled=False)
        manager.refresh()
        return found

    manager._reader.read_beside = read_then_enable
    manager.read_beside()
    assert not manager.table.services["h2"]["disabled"]


# --- what reads cost, and those that fail ----------------------------------------------------


@pytest.fixture
def costs(manager):
    """Those of the reads from now on."""
    found = []
    manager.read_listeners.append(found.append)
    return found


def test_reads_of_changes_and_of_everything(manager, database, costs):
    manager.refresh()
    change(database, registration.update_node, 2, {"free_ram_mb": 100})
    manager.refresh()
    manager.refresh_everything()
    expected = [(False, False), (False, True), (True, True)]
    assert [(cost.full, cost.rows > 0) for cost in costs] == expected
    assert costs[-1].rows >= 3
    assert all(cost.seconds > 0 and not cost.failed and not cost.repairs for cost in costs)


@pytest.mark.parametrize(("ago", "repairs"), [(MISSED_AFTER_SECONDS * 3, 1), (0, 0)])
def test_a_full_read_repairs_what_was_missed(database, clock, ago, repairs):
    """A change whose timestamp lies before everything that delta reads look at is missed."""
    without_triggers(database)
    with database.write() as connection:
        connection.execute(sa.update(NODES).values(created_at=rows.utcnow() - HOUR))
    clock.ahead_seconds = 120
    manager, costs = a_manager(database, clock), []
    manager.refresh()
    manager.read_listeners.append(costs.append)
    when = rows.utcnow() + datetime.timedelta(seconds=120 - ago)
    change(database, registration.update_node, 2, {"free_ram_mb": 123}, when)
    manager.refresh()
    assert value(manager, "h2", "free_ram_mb") == (7680 if repairs else 123)
    for _again in range(2):
        clock.ahead_seconds += 301
        manager.refresh()
        assert value(manager, "h2", "free_ram_mb") == 123
    # The second time it is known.
    assert [(each.full, each.repairs) for each in costs] == [(False, 0), (True, repairs), (True, 0)]


def refuse(*_arguments, **_options):
    raise db_exception.DBConnectionError(RuntimeError("no route"))


def test_a_read_that_fails(manager, costs, monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(FleetReader, "read", refuse)
    manager.refresh()
    assert "cannot be read: [database] connection: " in caplog.text
    manager.refresh(time.monotonic() - 60)  # served by an earlier read, which ends no failure
    assert ([cost.failed for cost in costs], manager.is_failing) == ([True], True)
    assert "being read again" not in caplog.text
    monkeypatch.undo()
    manager.refresh()
    assert ([cost.failed for cost in costs], manager.is_failing) == ([True, False], False)
    assert caplog.text.count("being read again") == 1


def break_down(*_arguments, **_options):
    raise TypeError("a row that nobody expected")


@pytest.mark.parametrize("failing", [refuse, break_down], ids=lambda each: each.__name__)
def test_the_last_state_serves_for_a_while_when_reads_fail(manager, clock, monkeypatch, failing):
    assert manager.state_age_seconds < 5
    clock.ahead_seconds = 3600
    manager.require_state()  # nothing has failed yet
    manager.refresh()
    monkeypatch.setattr(manager._reader, "read", failing)
    clock.ahead_seconds += 59
    manager.refresh()
    manager.require_state()
    clock.ahead_seconds += 3600
    for ask in (manager.refresh, manager.require_state):
        with pytest.raises(errors.StateUnavailable, match=r"36\d\d s old"):
            ask()
    monkeypatch.undo()
    manager.refresh()
    manager.require_state()


def test_without_any_state_there_is_no_decision(database, clock, monkeypatch):
    manager = a_manager(database, clock)
    monkeypatch.setattr(manager._reader, "read", refuse)
    with pytest.raises(errors.StateUnavailable, match="could not be read"):
        manager.refresh()


# --- questions -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "chosen", "is_up"),
    [
        ({"last_seen_up": -45}, "current", True),
        ({"last_seen_up": -62}, "current", False),
        ({"last_seen_up": 58}, "current", True),
        ({"last_seen_up": 90}, "current", False),
        ({"last_seen_up": None, "created_at": -10}, "current", True),
        ({"last_seen_up": None, "created_at": -62, "updated_at": 0}, "current", False),
        ({"last_seen_up": None, "created_at": -62, "updated_at": 0}, "newton", True),
        ({"disabled": True}, "current", False),
        ({"forced_down": True}, "current", False),
        ({"deleted": 1}, "current", False),
        ({"topic": "other"}, "current", False),
    ],
    ids=str,
)
def test_hosts_up_are_those_heard_from(database, clock, changes, chosen, is_up):
    conf = a_conf(scheduler__semantics=chosen)
    manager = HostManager(conf, a_reader(conf, database), clock)
    values = {
        name: rows.utcnow() + datetime.timedelta(seconds=value) if type(value) is int else value
        for name, value in changes.items()
        if name != "deleted"
    }
    table = tables.services
    with database.write() as connection:
        connection.execute(table.update().where(table.c.host == "h2").values({**changes, **values}))
    manager.refresh()
    assert manager.hosts_up("compute") == (["h1", "h2", "h3"] if is_up else ["h1", "h3"])
    if "created_at" in changes:
        assert (value(manager, "h2", "service_last_seen") > clock() - 60) is is_up


def test_the_first_node_of_a_host_is_that_of_the_lowest_id(manager, database):
    change(database, put_node, "h2", "another.example", NODE)
    manager.refresh()
    assert manager.state_of("h2").nodename == "h2.example"
    assert manager.state_of("h2", "another.example").nodename == "another.example"
    for ghost in (("ghost", None), ("h2", "h1.example")):
        with pytest.raises(errors.ComputeHostNotFound):
            manager.state_of(*ghost)


def test_capabilities_of_havanas_kind(manager, clock):
    said = {"hypervisor_hostname": "h1.example", "cpus": 4}
    manager.update_service_capabilities("compute", "h1", said)
    manager.update_service_capabilities("volume", "h2", {"hypervisor_hostname": "h2.example"})
    capabilities = manager.state_of("h1").capabilities
    now = datetime.datetime.fromtimestamp(clock(), datetime.UTC)
    assert (capabilities["cpus"], capabilities["timestamp"]) == (4, now.replace(tzinfo=None))
    with pytest.raises(TypeError):
        capabilities["cpus"] = 5
    assert manager.state_of("h2").capabilities == {}
