"""The host table follows the database.

That every kind of change is seen by the next refresh: test_interleaved_writers.
"""

import datetime
import gc
import time

import pytest
import sqlalchemy as sa
from oslo_db import exception as db_exception

from scheduler import errors, objects
from scheduler.db import compute_nodes, instances, services, tables
from scheduler.db.fleet_rows import EVERY_SECONDS, LATE_SECONDS
from scheduler.hosts import host_manager
from scheduler.hosts.consumption import Consumption
from scheduler.hosts.host_manager import HostManager
from tests.builders import a_conf
from tests.unit.db.builders import delete_host
from tests.unit.hosts.reading import (
    NODE,
    a_manager,
    a_reader,
    candidates,
    change,
    row_of,
    utc_now,
    value,
)
from tests.waiting import wait_until

HOUR = datetime.timedelta(hours=1)


def test_the_first_refresh_reads_everything(manager):
    assert candidates(manager) == ["h1", "h2", "h3"]
    assert value(manager, "h1", "free_ram_mb") == 7680
    assert value(manager, "h1", "free_disk_mb") == 90 * 1024
    assert value(manager, "h1", "num_instances") == 1
    assert value(manager, "h1", "ram_allocation_ratio") == 1.0
    assert manager.state_age_seconds < 5


def test_a_second_report_in_the_same_second_is_seen_however_late(manager, database, clock):
    now = utc_now()
    for free_ram_mb in (100, 200):
        change(database, compute_nodes.update_usage, 2, {"free_ram_mb": free_ram_mb}, now)
        manager.refresh()
        assert value(manager, "h2", "free_ram_mb") == free_ram_mb
    change(database, compute_nodes.update_usage, 2, {"free_ram_mb": 300}, now)
    clock.ahead_seconds = 10
    manager.refresh()
    assert value(manager, "h2", "free_ram_mb") == 300


def test_a_row_emptied_by_its_host_keeps_its_numbers_and_its_reservations(manager, database):
    amount = Consumption(ram_mb=512, disk_mb=1024, vcpus=1)
    made = manager.reservations.reserve(row_of(manager, "h2"), "u1", amount, manager.clock())
    change(database, compute_nodes.upsert, "h2", "h2.example", {**NODE, "free_disk_gb": None})
    manager.refresh()
    assert value(manager, "h2", "free_ram_mb") == 7680 - 512
    manager.reservations.release(made)
    assert value(manager, "h2", "free_ram_mb") == 7680


def test_a_deleted_service_hides_its_host_and_a_new_one_shows_it(manager, database):
    change(database, delete_host, "h2")
    manager.refresh()
    assert candidates(manager) == ["h1", "h3"]


@pytest.mark.parametrize(
    ("function", "column"),
    [
        (services.set_disabled, "service_disabled"),
        (services.set_forced_down, "service_forced_down"),
    ],
)
def test_switches_of_the_operator_are_seen_at_once(manager, database, function, column):
    for wanted in (True, False, True):
        change(database, function, "h2", "nova-compute", wanted)
        manager.refresh()
        assert value(manager, "h2", column) is wanted
        assert value(manager, "h1", column) is False


@pytest.mark.parametrize("ahead_seconds", [EVERY_SECONDS, LATE_SECONDS])
def test_heartbeats_are_read_beside_the_requests_unless_they_are_late(
    manager, database, clock, ahead_seconds
):
    before = value(manager, "h2", "service_last_seen")
    beat = utc_now() + datetime.timedelta(seconds=10)
    change(database, services.heartbeat_many, [2], beat)

    def is_seen():
        manager.refresh()
        return value(manager, "h2", "service_last_seen") > before

    clock.ahead_seconds = ahead_seconds
    if ahead_seconds == LATE_SECONDS:
        assert is_seen()
    else:
        wait_until(is_seen)


def metadata_of(manager, host):
    aggregates_of_host = manager.table.value(row_of(manager, host), "aggregates")
    return [dict(each.metadata) for each in aggregates_of_host]


def test_aggregates_broadcast_count_at_once_and_the_database_corrects_them(manager):
    manager.update_aggregates(
        [objects.Aggregate(id=7, uuid="u", name="a", hosts=["h1"], metadata={"a": "1"})]
    )
    assert metadata_of(manager, "h1") == [{"a": "1"}]
    manager.delete_aggregate(objects.Aggregate(id=7))
    assert metadata_of(manager, "h1") == []


def an_instance(uuid, host):
    return objects.Instance(
        uuid=uuid, host=host, node=f"{host}.example", project_id="p", user_id="u",
        vm_state="active", memory_mb=512, vcpus=1, root_gb=1, ephemeral_gb=0,
    )  # fmt: skip


def test_instances_are_followed_from_host_to_host(manager, database):
    change(database, instances.create, an_instance("u1", "h1"))
    manager.refresh()
    assert list(manager.table.instances["h1"]) == ["u1"]
    change(database, instances.update, "u1", host="h2")
    manager.refresh()
    assert "h1" not in manager.table.instances
    assert list(manager.table.instances["h2"]) == ["u1"]
    change(database, instances.destroy, "u1")
    manager.refresh()
    assert manager.table.instances == {}


def test_instance_updates_by_rpc(manager, database):
    change(database, instances.create, an_instance("u1", "h1"))
    manager.update_instance_info(
        None, "h1", objects.InstanceList(objects=[an_instance("u1", "h1")])
    )
    assert list(manager.table.instances["h1"]) == ["u1"]
    manager.delete_instance_info(None, "h2", "u1")  # it is not there: nothing happens
    assert list(manager.table.instances["h1"]) == ["u1"]
    manager.delete_instance_info(None, "h1", "u1")
    assert manager.table.instances == {}
    manager.sync_instance_info(None, "h1", ["u1"])
    assert list(manager.table.instances["h1"]) == ["u1"]


def broken(manager, monkeypatch):
    def read(*_arguments, **_options):
        raise db_exception.DBConnectionError(RuntimeError("no route"))

    monkeypatch.setattr(manager._reader, "read", read)


@pytest.fixture
def looking_at_images(database, clock):
    """A host manager for weighers that look at the images of the servers."""
    conf = a_conf(image_props_weight_multiplier=1.0)
    manager = HostManager(conf, a_reader(conf, database), clock)
    manager.refresh()
    return manager


def properties_on(manager, host):
    return {
        uuid: set(instance.image_properties)
        for uuid, instance in manager.table.instances.get(host, {}).items()
    }


def test_images_of_instances_are_read_for_those_who_look_at_them(database, manager, request):
    metadata = {"image_hw_vm_mode": "hvm", "image_base_image_ref": "i1", "owner": "x"}
    instance = an_instance("u1", "h1")
    instance.system_metadata = metadata
    change(database, instances.create, instance)
    change(database, instances.create, an_instance("u2", "h1"))
    known = {"u1": {("hw_vm_mode", "hvm")}, "u2": set()}

    looking = request.getfixturevalue("looking_at_images")  # reads all
    assert properties_on(looking, "h1") == known
    change(database, instances.set_system_metadata, "u2", "image_os_type", "linux")
    change(database, instances.update, "u2", task_state="rebuilding")
    looking.refresh()  # reads what changed
    assert properties_on(looking, "h1") == known | {"u2": {("os_type", "linux")}}
    manager.refresh()
    assert properties_on(manager, "h1") == {"u1": set(), "u2": set()}


@pytest.mark.parametrize(("chosen", "is_up"), [("current", []), ("newton", ["h1"])])
def test_liveness_without_a_heartbeat_is_up_to_the_semantics(database, clock, chosen, is_up):
    conf = a_conf()
    conf.set_override("semantics", chosen, group="scheduler")
    long_ago = utc_now() - datetime.timedelta(hours=1)
    with database.write() as connection:
        connection.execute(
            tables.services.update()
            .where(tables.services.c.host == "h1")
            .values(last_seen_up=None, created_at=long_ago, updated_at=utc_now())
        )
        connection.execute(
            tables.services.update()
            .where(tables.services.c.host != "h1")
            .values(last_seen_up=long_ago, created_at=long_ago)
        )
    manager = HostManager(conf, a_reader(conf, database), clock)
    manager.refresh()

    assert manager.hosts_up("compute") == is_up
    up = manager.table.column("service_last_seen")[row_of(manager, "h1")] > time.time() - 60
    assert ["h1"] * int(up) == is_up


def test_the_last_state_serves_for_a_while_when_the_database_is_away(manager, clock, monkeypatch):
    clock.ahead_seconds = 3600
    manager.require_state()  # nothing has failed yet
    manager.refresh()
    broken(manager, monkeypatch)
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
    broken(manager, monkeypatch)
    with pytest.raises(errors.StateUnavailable, match="could not be read"):
        manager.refresh()


def test_a_full_read_repairs_what_was_missed(database, clock):
    """A change whose timestamp lies before everything that delta reads look at."""
    with database.write() as connection:
        connection.execute(sa.update(tables.compute_nodes).values(created_at=utc_now() - HOUR))
    clock.ahead_seconds = 120
    manager = a_manager(database, clock)
    manager.refresh()
    change(database, compute_nodes.update_usage, 2, {"free_ram_mb": 1}, utc_now())
    manager.refresh()
    assert value(manager, "h2", "free_ram_mb") == 7680
    clock.ahead_seconds = 120 + 301
    manager.refresh()
    assert value(manager, "h2", "free_ram_mb") == 1


@pytest.mark.parametrize(("many", "is_set_aside"), [(3, True), (4, False)])
def test_a_large_fleet_is_kept_from_the_garbage_collector(
    database, clock, monkeypatch, many, is_set_aside
):
    monkeypatch.setattr(host_manager, "MANY_HOSTS", many)
    before = gc.get_freeze_count()
    a_manager(database, clock).refresh()
    try:
        assert (gc.get_freeze_count() > before) is is_set_aside
    finally:
        gc.unfreeze()
