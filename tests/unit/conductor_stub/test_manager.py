"""``build_instances`` when all goes well: the casts and the rows."""

from __future__ import annotations

import pytest

from conductor_stub import block_devices, build_requests, mappings
from scheduler import errors, objects
from scheduler.db import aggregates, flavors, groups, instances, rows
from scheduler.db.tables import cell_mappings
from tests.unit.conductor_stub import builders
from tests.unit.conductor_stub.driving import attempts, build, request_spec


def test_every_instance_goes_to_its_own_host_with_its_own_alternates(conductor):
    asked_for = conductor.asked_for(2)
    chosen = [builders.selection(name) for name in ("a", "b", "c", "d")]
    conductor.scheduler.answer = [[chosen[0], chosen[1]], [chosen[2], chosen[3]]]

    build(conductor, asked_for)

    (first_host, first), (second_host, second) = conductor.compute.casts
    assert (first_host, second_host) == ("a", "c")
    assert (first.instance.uuid, second.instance.uuid) == tuple(builders.UUIDS[:2])
    assert (first.host_list, second.host_list) == ([chosen[1]], [chosen[3]])
    assert (first.node, first.limits) == ("a", {"memory_mb": 4096})
    assert first.filter_properties == {
        "scheduler_hints": {},
        "retry": {"num_attempts": 1, "hosts": [["a", "a"]]},
        "limits": {"memory_mb": 4096},
    }
    assert second.filter_properties["retry"]["hosts"] == [["c", "c"]]
    assert first.accel_uuids == []


def test_the_request_tells_the_scheduler_everything(conductor):
    asked_for = conductor.asked_for(2, availability_zone="az1")
    conductor.scheduler.answer = [[builders.selection()]] * 2

    build(conductor, asked_for, {"scheduler_hints": {"k": "v"}, "ignore_hosts": ["x"]})

    (spec,) = conductor.scheduler.asked
    assert (spec.num_instances, spec.instance_uuid) == (2, builders.UUIDS[0])
    assert (spec.availability_zone, spec.flavor.name) == ("az1", "m1.small")
    assert (spec.scheduler_hints, spec.ignore_hosts) == ({"k": ["v"]}, ["x"])
    assert spec.retry.num_attempts == 1


def test_the_compute_gets_the_request_with_what_was_tried(conductor):
    asked_for = conductor.asked_for()
    conductor.scheduler.answer = [[builders.selection("a")]]

    build(conductor, asked_for)

    ((_, cast),) = conductor.compute.casts
    assert cast.request_spec.retry.to_dict() == {"num_attempts": 1, "hosts": [["a", "a"]]}
    assert cast.request_spec.limits.memory_mb == 4096
    assert cast.legacy_spec["instance_properties"]["uuid"] == builders.UUIDS[0]
    assert cast.admin_password == "secret"


def test_the_rows_say_where_the_instance_went(conductor):
    (instance,) = asked_for = conductor.asked_for()
    with conductor.database.write() as conn:
        cell_id = _cell(conn)
        mappings.create_host_mappings(conn, ["a"], cell_id)
        block_devices.create(conn, [_device(instance, source_type="image", boot_index=0)])
    conductor.scheduler.answer = [[builders.selection("a")]]

    build(conductor, asked_for)

    with conductor.database.read() as conn:
        assert mappings.get_instance_mapping(conn, instance.uuid).cell_id == cell_id
        with pytest.raises(errors.BuildRequestNotFound):
            build_requests.get(conn, instance.uuid)
    row = conductor.row(instance)
    assert (row.vm_state, row.task_state, row.host) == ("building", "scheduling", None)
    assert row.availability_zone == "az-of-a"
    assert attempts(conductor, instance) == "1"
    ((_, cast),) = conductor.compute.casts
    assert [each.source_type for each in cast.block_device_mapping] == ["image"]
    assert cast.instance.availability_zone == "az-of-a"


def _device(instance, **fields):
    return objects.BlockDeviceMapping(instance_uuid=instance.uuid, **fields)


def _cell(conn):
    return rows.insert(conn, cell_mappings, uuid=builders.UUIDS[8], name="cell1", disabled=False)


def test_a_host_in_no_cell_ends_the_instances_mapping(conductor):
    (instance,) = asked_for = conductor.asked_for()
    conductor.scheduler.answer = [[builders.selection("a")]]

    build(conductor, asked_for)

    with conductor.database.read() as conn:
        assert mappings.get_instance_mapping(conn, instance.uuid) is None
    assert len(conductor.compute.casts) == 1


@pytest.mark.parametrize(
    ("version_one", "zone"),
    [
        pytest.param({}, "az-of-a", id="the selection names it"),
        pytest.param({"availability_zone": None}, None, id="the selection names none"),
    ],
)
def test_the_zone_of_the_selection_is_kept(conductor, version_one, zone):
    (instance,) = asked_for = conductor.asked_for(availability_zone="asked")
    conductor.scheduler.answer = [[builders.selection("a", **version_one)]]

    build(conductor, asked_for)

    assert conductor.row(instance).availability_zone == zone


@pytest.mark.parametrize(
    ("in_aggregate", "zone"), [("a", "az-of-aggregate"), ("elsewhere", "nova")]
)
def test_an_older_selections_zone_is_that_of_the_hosts_aggregates(conductor, in_aggregate, zone):
    (instance,) = asked_for = conductor.asked_for()
    with conductor.database.write() as conn:
        aggregates.create(conn, "plain", {}, ["a"])
        aggregates.create(conn, "zone", {"availability_zone": "az-of-aggregate"}, [in_aggregate])
    older = objects.Selection(service_host="a", nodename="a", allocation_request="null")
    conductor.scheduler.answer = [[older]]

    build(conductor, asked_for)

    assert conductor.row(instance).availability_zone == zone
    ((_, cast),) = conductor.compute.casts
    assert cast.limits == {}


def test_for_newton_computes_the_zone_stays_as_asked(conductor):
    """Their reschedule makes its request from the instance, so the zone would bind it."""
    (instance,) = asked_for = conductor.asked_for(availability_zone=None)
    conductor.compute.speaks_newton = True
    conductor.scheduler.answer = [[builders.selection("a")]]

    build(conductor, asked_for)

    assert conductor.row(instance).availability_zone is None


def test_fields_that_no_row_holds_travel_with_the_instance(conductor):
    recorded = builders.recorded_instance()
    with conductor.database.write() as conn:
        instances.create(conn, recorded.copy())
        build_requests.create(conn, recorded)
    conductor.scheduler.answer = [[builders.selection("a")]]

    build(conductor, [recorded])

    ((_, cast),) = conductor.compute.casts
    sent, given = (objects.to_primitive(each) for each in (cast.instance, recorded))
    data, before = sent["nova_object.data"], given["nova_object.data"]
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
    conductor.scheduler.answer = [[builders.selection("a")]]

    build(conductor, conductor.asked_for(), requested_networks=given)

    ((_, cast),) = conductor.compute.casts
    sent = cast.requested_networks
    assert (sent if sent is None else sent.as_tuples(4)) == networks


def test_a_flavor_that_is_no_object_is_read_by_its_id(conductor, database):
    from_rows = builders.flavor(name="stored", flavorid="9")
    with database.write() as conn:
        stored = flavors.create(conn, from_rows)
    conductor.scheduler.answer = [[builders.selection("a")]]

    build(conductor, conductor.asked_for(), {"instance_type": {"id": stored.id, "name": "x"}})

    ((_, cast),) = conductor.compute.casts
    assert cast.filter_properties["instance_type"].name == "stored"


# -- groups -----------------------------------------------------------------------------------


def test_the_groups_hosts_are_in_the_request(conductor, database):
    asked_for = conductor.asked_for(2)
    with database.write() as conn:
        group = groups.create(conn, "g", "anti-affinity")
        groups.add_members(conn, group.uuid, [each.uuid for each in asked_for])
        instances.update(conn, asked_for[1].uuid, host="taken")
    conductor.scheduler.answer = [[builders.selection("a")]]

    build(conductor, asked_for[:1], {"group_hosts": ["given"], "group_updated": True})

    (spec,) = conductor.scheduler.asked
    assert spec.instance_group.uuid == group.uuid
    assert spec.instance_group.policy == "anti-affinity"
    assert sorted(spec.instance_group.hosts) == ["given", "taken"]
    assert sorted(spec.instance_group.members) == sorted(each.uuid for each in asked_for)


def test_a_given_request_is_what_is_asked_and_passed_on(conductor):
    (instance,) = asked_for = conductor.asked_for(availability_zone="of-the-instance")
    wanted = [objects.RequestGroup(requester_id="r")]
    given = request_spec(instance, availability_zone="asked", requested_resources=wanted)
    conductor.scheduler.answer = [[builders.selection("a")]]

    build(conductor, asked_for, request_spec=given)

    assert [each.availability_zone for each in conductor.scheduler.asked] == ["asked"]
    ((_, cast),) = conductor.compute.casts
    assert cast.request_spec.requested_resources[0].requester_id == "r"
    assert attempts(conductor, instance) == "1"
