"""Registration of compute hosts, and what they report."""

from __future__ import annotations

import pytest

from conductor_stub import server_rows
from scheduler.db import aggregates, instances, services
from tests.unit.conductor_stub.compute.fleets import NOW, Fleet, an_instance
from tests.waiting import wait_until


def test_registration(conf, transport, database, scheduler):
    fleet = Fleet(conf, database, transport)
    fleet.hosts.register()
    with database.read() as conn:
        found = services.list_all(conn)
        assert [(s.host, s.binary, s.topic, s.version) for s in found] == [
            (fleet.first, "nova-compute", "compute", 74),
            (fleet.second, "nova-compute", "compute", 74),
        ]
        assert not any(s.disabled or s.forced_down for s in found)
        assert server_rows.get_host_mapping(conn, fleet.second) is not None
        groups = {a.name: (sorted(a.hosts), a.metadata) for a in aggregates.list_all(conn)}
    assert groups == {
        "fast": ([fleet.first, fleet.second], {"ssd": "true"}),
        "z1": ([fleet.first], {"availability_zone": "z1"}),
        "z2": ([fleet.second], {"availability_zone": "z2"}),
    }
    node = fleet.node()
    assert (node.vcpus, node.memory_mb_used, node.mapped) == (4, conf.reserved_host_memory_mb, 1)
    news = wait_until(
        lambda: len(scheduler.about(fleet.prefix)) == 3 and scheduler.about(fleet.prefix)
    )
    assert news[0] == ("aggregate", "fast", [fleet.first, fleet.second])


def test_registering_again_keeps_instances_and_what_operators_added(fleet, scheduler):
    instance = an_instance(fleet.database)
    fleet.order(fleet.hosts, instance)
    before = fleet.node()
    with fleet.database.write() as conn:
        zone = aggregates.get(conn, "z1")
        aggregates.set_metadata(conn, zone.id, {"mine": "yes"})
        aggregates.add_host(conn, zone.id, "other")
    fleet.make().register()
    after = fleet.node()
    assert (after.id, after.uuid) == (before.id, before.uuid)
    assert (after.vcpus_used, after.running_vms) == (1, 1)
    with fleet.database.read() as conn:
        assert len(services.list_all(conn)) == 2
        zone = aggregates.get(conn, "z1")
    assert zone.metadata == {"availability_zone": "z1", "mine": "yes"}
    assert sorted(zone.hosts) == [fleet.first, "other"]


def test_new_services_may_begin_disabled(conf, transport, database, scheduler):
    conf.set_override("enable_new_services", False)
    try:
        fleet = Fleet(conf, database, transport)
        fleet.hosts.register()
    finally:
        conf.clear_override("enable_new_services")
    with database.read() as conn:
        found = services.get(conn, fleet.first, "nova-compute")
    assert found.disabled
    assert "config option" in found.disabled_reason


def test_a_build_that_was_cut_off_is_an_error_after_the_restart(fleet):
    instance = an_instance(fleet.database)

    def die(seconds: float) -> None:
        raise SystemExit

    with pytest.raises(SystemExit):
        fleet.order(fleet.make(pause=die, build_seconds=1), instance)
    assert fleet.row(instance.uuid).task_state == "spawning"
    fleet.make().register()
    assert fleet.row(instance.uuid).vm_state == "error"
    assert fleet.node().running_vms == 0
    with fleet.database.read() as conn:
        fault = instances.latest_fault(conn, instance.uuid)
    assert fault is not None
    assert f"{fleet.first} ended during the build" in fault.message


def test_one_heartbeat_for_all(fleet):
    fleet.hosts.heartbeat()
    fleet.hosts.heartbeat()
    with fleet.database.read() as conn:
        found = services.list_all(conn)
    assert [service.report_count for service in found] == [2, 2]
    assert {service.last_seen_up.replace(tzinfo=None) for service in found} == {NOW}


def test_periodic_messages(fleet, scheduler):
    instance = an_instance(fleet.database)
    fleet.order(fleet.hosts, instance)
    wait_until(lambda: scheduler.about(fleet.prefix))
    scheduler.news.clear()
    fleet.hosts.announce()
    fleet.hosts.sync_instances()
    expected = [
        ("sync", fleet.first, [instance.uuid]),
        ("sync", fleet.second, []),
        ("update", fleet.first, [instance.uuid]),
        ("update", fleet.second, []),
    ]
    wait_until(lambda: scheduler.about(fleet.prefix) == expected)


def test_nothing_is_announced_when_schedulers_do_not_track(conf, fleet, scheduler):
    conf.set_override("track_instance_changes", False, group="filter_scheduler")
    try:
        hosts = fleet.make()
    finally:
        conf.clear_override("track_instance_changes", group="filter_scheduler")
    quiet = an_instance(fleet.database)
    fleet.order(hosts, quiet)
    loud = an_instance(fleet.database)
    fleet.order(fleet.hosts, loud)
    wait_until(lambda: scheduler.about(fleet.prefix))
    assert scheduler.about(fleet.prefix) == [("update", fleet.first, [loud.uuid])]
