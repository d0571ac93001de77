"""Registration of compute hosts, and what they report."""

from __future__ import annotations

import pytest

from conductor_stub import server_rows
from scheduler.db import aggregates, instances, services
from tests.unit.conductor_stub import builders
from tests.unit.conductor_stub.compute.fleets import NOW, Fleet, an_instance


def test_registration(database):
    fleet = Fleet(builders.conf(), database)
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
    assert (node.vcpus, node.memory_mb_used, node.mapped) == (
        4,
        fleet.conf.reserved_host_memory_mb,
        1,
    )
    assert fleet.ends.news[0] == ("aggregate", "fast", [fleet.first, fleet.second])


def test_registering_again_keeps_instances_and_what_operators_added(fleet):
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


def test_new_services_may_begin_disabled(database):
    fleet = Fleet(builders.conf(enable_new_services=False), database)
    fleet.hosts.register()
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


def test_periodic_messages(fleet, ends):
    instance = an_instance(fleet.database)
    fleet.order(fleet.hosts, instance)
    ends.news.clear()
    fleet.hosts.announce()
    fleet.hosts.sync_instances()
    assert ends.news == [
        ("update", fleet.first, [instance.uuid]),
        ("update", fleet.second, []),
        ("sync", fleet.first, [instance.uuid]),
        ("sync", fleet.second, []),
    ]


def test_nothing_is_announced_when_schedulers_do_not_track(database):
    fleet = Fleet(builders.conf(filter_scheduler__track_instance_changes=False), database)
    fleet.hosts.register()
    fleet.ends.news.clear()
    fleet.order(fleet.hosts, an_instance(database))
    assert fleet.node().running_vms == 1
    assert fleet.ends.news == []
