"""Registration of compute hosts, and what they report."""

from scheduler.db import aggregates, services
from tests.unit.conductor_stub.compute.fleets import FIRST, NOW, SECOND, Fleet, an_instance


def test_registration(database):
    fleet = Fleet(database)
    with database.read() as conn:
        found = services.list_all(conn)
        services_of = [(name, "nova-compute", "compute", 74) for name in (FIRST, SECOND)]
        assert [(s.host, s.binary, s.topic, s.version) for s in found] == services_of
        assert not any(s.disabled or s.forced_down for s in found)
        groups = {a.name: (sorted(a.hosts), a.metadata) for a in aggregates.list_all(conn)}
    assert groups == {
        "fast": ([FIRST, SECOND], {"ssd": "true"}),
        "z1": ([FIRST], {"availability_zone": "z1"}),
        "z2": ([SECOND], {"availability_zone": "z2"}),
    }
    node = fleet.node()
    assert (node.vcpus, node.memory_mb_used, node.mapped) == (4, 512, 0)
    assert fleet.ends.news[0] == ("aggregate", "fast", [FIRST, SECOND])


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
    assert sorted(zone.hosts) == [FIRST, "other"]


def test_new_services_may_begin_disabled_and_are_heard_of(database):
    hosts = Fleet(database, DEFAULT__enable_new_services=False).hosts
    hosts.heartbeat()
    hosts.heartbeat()
    with database.read() as conn:
        found = services.list_all(conn)
    assert [each.report_count for each in found] == [2, 2]
    assert {each.last_seen_up.replace(tzinfo=None) for each in found} == {NOW}
    assert all(each.disabled and "config option" in each.disabled_reason for each in found)


def test_periodic_messages(fleet):
    instance = an_instance(fleet.database)
    fleet.order(fleet.hosts, instance)
    fleet.ends.news.clear()
    fleet.hosts.announce()
    fleet.hosts.sync_instances()
    assert fleet.ends.news == [
        ("update", FIRST, [instance.uuid]),
        ("update", SECOND, []),
        ("sync", FIRST, [instance.uuid]),
        ("sync", SECOND, []),
    ]


def test_nothing_is_announced_when_schedulers_do_not_track(database):
    fleet = Fleet(database, filter_scheduler__track_instance_changes=False)
    fleet.ends.news.clear()
    fleet.order(fleet.hosts, an_instance(database))
    assert fleet.node().running_vms == 1
    assert fleet.ends.news == []
