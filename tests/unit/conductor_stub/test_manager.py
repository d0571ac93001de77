"""``build_instances`` when all goes well: the casts and the rows."""

from __future__ import annotations

import pytest
from oslo_messaging.rpc import dispatcher

from conductor_stub import server_rows
from scheduler import errors, objects
from scheduler.db import aggregates, flavors, groups, instances
from tests.unit.conductor_stub import builders
from tests.unit.conductor_stub.driving import attempts, build, request_spec


def built_on_a(conductor, asked_for=None, properties=None, selection=None, **more):
    """Build on the host a; the cast."""
    conductor.scheduler.answer = [[selection or builders.selection("a")]]
    build(conductor, asked_for or conductor.asked_for(), properties, **more)
    ((_, cast),) = conductor.compute.casts
    return cast


def test_every_instance_goes_to_its_own_host_with_its_own_alternates(conductor):
    asked_for = conductor.asked_for(2, availability_zone="az1")
    chosen = [builders.selection(name) for name in ("a", "b", "c", "d")]
    conductor.scheduler.answer = [[chosen[0], chosen[1]], [chosen[2], chosen[3]]]
    build(conductor, asked_for, {"scheduler_hints": {"k": "v"}, "ignore_hosts": ["x"]})

    (spec,) = conductor.scheduler.asked
    assert (spec.num_instances, spec.instance_uuid) == (2, builders.UUIDS[0])
    assert (spec.availability_zone, spec.flavor.name) == ("az1", "m1.small")
    assert (spec.scheduler_hints, spec.ignore_hosts) == ({"k": ["v"]}, ["x"])
    (first_host, first), (second_host, second) = conductor.compute.casts
    assert (first_host, second_host) == ("a", "c")
    assert (first.instance.uuid, second.instance.uuid) == tuple(builders.UUIDS[:2])
    assert (first.host_list, second.host_list) == ([chosen[1]], [chosen[3]])
    assert (first.node, first.limits, first.accel_uuids) == ("a", {"memory_mb": 4096}, [])
    assert first.admin_password == "secret"
    assert first.filter_properties == {
        "scheduler_hints": {"k": "v"},
        "ignore_hosts": ["x"],
        "retry": {"num_attempts": 1, "hosts": [["a", "a"]]},
        "limits": {"memory_mb": 4096},
    }
    assert first.request_spec.retry.to_dict() == first.filter_properties["retry"]
    assert first.request_spec.limits.memory_mb == 4096
    assert first.legacy_spec["instance_properties"]["uuid"] == builders.UUIDS[0]
    assert second.filter_properties["retry"]["hosts"] == [["c", "c"]]


def test_the_rows_say_where_the_instance_went(conductor):
    (instance,) = asked_for = conductor.asked_for()
    disk = objects.BlockDeviceMapping(
        instance_uuid=instance.uuid, source_type="image", boot_index=0
    )
    with conductor.database.write() as conn:
        cell_id = builders.cell(conn, "cell1", builders.UUIDS[8])
        server_rows.create_host_mappings(conn, ["a"], cell_id)
        server_rows.create_disks(conn, [disk])
    cast = built_on_a(conductor, asked_for)

    with conductor.database.read() as conn:
        assert server_rows.get_instance_mapping(conn, instance.uuid).cell_id == cell_id
        assert server_rows.list_build_requests(conn) == []
    row = conductor.row(instance)
    assert (row.vm_state, row.task_state, row.host) == ("building", "scheduling", None)
    assert row.availability_zone == cast.instance.availability_zone == "az-of-a"
    assert attempts(conductor, instance) == "1"
    assert [each.source_type for each in cast.block_device_mapping] == ["image"]


def test_a_host_in_no_cell_ends_the_instances_mapping(conductor):
    (instance,) = asked_for = conductor.asked_for()
    built_on_a(conductor, asked_for)
    with conductor.database.read() as conn:
        assert server_rows.get_instance_mapping(conn, instance.uuid) is None


OLDER = objects.Selection(service_host="a", nodename="a", allocation_request="null")


@pytest.mark.parametrize(
    ("selection", "zoned_host", "speaks_newton", "zone"),
    [
        pytest.param(builders.selection("a"), "a", False, "az-of-a", id="the selection names it"),
        pytest.param(
            builders.selection("a", availability_zone=None), "a", False, None, id="it names none"
        ),
        pytest.param(OLDER, "a", False, "az-of-aggregate", id="that of the host's aggregates"),
        pytest.param(OLDER, "elsewhere", False, "nova", id="the default"),
        # A reschedule of theirs makes its request from the instance: the zone would bind it.
        pytest.param(builders.selection("a"), "a", True, "asked", id="Newton's computes"),
    ],
)
def test_the_zone_of_the_instance(conductor, selection, zoned_host, speaks_newton, zone):
    (instance,) = asked_for = conductor.asked_for(availability_zone="asked")
    with conductor.database.write() as conn:
        aggregates.create(conn, "plain", {}, ["a"])
        aggregates.create(conn, "zone", {"availability_zone": "az-of-aggregate"}, [zoned_host])
    conductor.compute.speaks_newton = speaks_newton
    cast = built_on_a(conductor, asked_for, selection=selection)
    assert conductor.row(instance).availability_zone == zone
    assert cast.limits == ({} if selection is OLDER else {"memory_mb": 4096})


def test_fields_that_no_row_holds_travel_with_the_instance(conductor):
    recorded = builders.recorded_instance()
    with conductor.database.write() as conn:
        instances.create(conn, recorded.copy())
        server_rows.create_build_request(conn, recorded)
    cast = built_on_a(conductor, [recorded])
    data, before = (
        objects.to_primitive(each)["nova_object.data"] for each in (cast.instance, recorded)
    )
    assert data["ec2_ids"] == before["ec2_ids"]
    changed = {key for key in before if data[key] != before[key]}
    assert changed <= {"availability_zone", "created_at", "flavor"}


@pytest.mark.parametrize(
    ("given", "networks"),
    [
        (None, None),
        ([], None),
        ([["net", None, None, None]], [("net", None, None, None)]),
        (
            objects.NetworkRequestList(objects=[objects.NetworkRequest(network_id="n")]),
            [("n", None, None, None)],
        ),
    ],
)
def test_networks_as_tuples_become_objects(conductor, given, networks):
    sent = built_on_a(conductor, requested_networks=given).requested_networks
    assert (sent if sent is None else sent.as_tuples(4)) == networks


def test_a_flavor_that_is_no_object_is_read_by_its_id(conductor):
    with conductor.database.write() as conn:
        stored = flavors.create(conn, builders.flavor(name="stored", flavorid="9"))
    cast = built_on_a(conductor, properties={"instance_type": {"id": stored.id, "name": "x"}})
    assert cast.filter_properties["instance_type"].name == "stored"


def test_the_groups_hosts_are_in_the_request(conductor):
    asked_for = conductor.asked_for(2)
    with conductor.database.write() as conn:
        group = groups.create(conn, "g", "anti-affinity")
        groups.add_members(conn, group.uuid, [each.uuid for each in asked_for])
        instances.update(conn, asked_for[1].uuid, host="taken")
    built_on_a(conductor, asked_for[:1], {"group_hosts": ["given"], "group_updated": True})
    (spec,) = conductor.scheduler.asked
    assert (spec.instance_group.uuid, spec.instance_group.policy) == (group.uuid, "anti-affinity")
    assert sorted(spec.instance_group.hosts) == ["given", "taken"]
    assert sorted(spec.instance_group.members) == sorted(each.uuid for each in asked_for)


def test_a_given_request_is_what_is_asked_and_passed_on(conductor):
    (instance,) = asked_for = conductor.asked_for(availability_zone="of-the-instance")
    wanted = [objects.RequestGroup(requester_id="r")]
    given = request_spec(instance, availability_zone="asked", requested_resources=wanted)
    cast = built_on_a(conductor, asked_for, request_spec=given)
    assert [each.availability_zone for each in conductor.scheduler.asked] == ["asked"]
    assert cast.request_spec.requested_resources[0].requester_id == "r"


@pytest.mark.parametrize(
    "method", ["build_instances", "schedule_and_build_instances", "rebuild_instance"]
)
def test_an_argument_that_nobody_knows_is_named(conductor, method):
    arguments = {
        "build_instances": {"instances": [], "filter_properties": {}},
        "schedule_and_build_instances": {"build_requests": [], "request_specs": []},
        "rebuild_instance": {"instance": builders.instance()},
    }
    with pytest.raises((errors.InvalidRequest, dispatcher.ExpectedException)) as caught:
        getattr(conductor.manager, method)(None, **arguments[method], spped=9)
    named = getattr(caught.value, "exc_info", (None, caught.value))[1]
    assert "spped" in str(named)
