"""Builds: what the scheduler is asked, what the cast holds, and what the rows keep of it."""

import json
import logging

import pytest

from conductor_stub import server_rows, wire_objects
from scheduler import errors, objects
from scheduler.db import aggregates, flavors, groups, instances, services
from tests.unit.conductor_stub import builders
from tests.unit.conductor_stub.driving import attempts, build, call, fault, specs_of, start, tried

NO_VALID_HOST = errors.NoValidHost(reason="There are not enough hosts available.")
OLDER = objects.Selection(service_host="a", nodename="a", allocation_request="null")
NETWORK = ("net", None, None, None)
FIRST_ATTEMPT = {
    "scheduler_hints": {"k": "v"},
    "retry": {"num_attempts": 1, "hosts": [["a", "a"]]},
    "limits": {"memory_mb": 4096},
}


def built_on_a(conductor, asked_for=None, properties=None, selection=None, **more):
    """Build on the host a; the cast."""
    conductor.scheduler.answer = [[selection or builders.selection("a"), builders.selection("b")]]
    build(conductor, asked_for or conductor.asked_for(), properties, **more)
    ((_, cast),) = conductor.compute.casts
    return cast


def started_on_a(conductor, wanted, specs=None, allocation_request="null", **more):
    """Make and build new servers on a, b, and so on; the casts."""
    conductor.scheduler.answer = [
        [builders.selection(name, allocation_request=allocation_request)] for name in "abc"
    ][: len(wanted)]
    start(conductor, wanted, specs, **more)
    return [cast for _, cast in conductor.compute.casts]


def test_a_build_of_newtons_api(conductor):
    (instance,) = asked_for = conductor.asked_for(availability_zone="az1")
    disk = wire_objects.BlockDeviceMapping(
        instance_uuid=instance.uuid, source_type="image", boot_index=0
    )
    with conductor.database.write() as conn:
        server_rows.create_disks(conn, [disk])
        stored = flavors.create(conn, builders.flavor(name="stored", flavorid="9"))

    properties = {"scheduler_hints": {"k": "v"}, "ignore_hosts": ["x"]}
    properties["instance_type"] = {"id": stored.id, "name": "no object"}
    cast = built_on_a(conductor, asked_for, properties)

    (spec,) = conductor.scheduler.asked
    assert (spec.num_instances, spec.instance_uuid) == (1, instance.uuid)
    assert (spec.availability_zone, spec.flavor.name) == ("az1", "m1.small")
    assert (spec.scheduler_hints, spec.ignore_hosts) == ({"k": ["v"]}, ["x"])
    assert (cast.node, cast.limits, cast.accel_uuids) == ("a", {"memory_mb": 4096}, [])
    assert cast.admin_password == "secret"
    assert cast.filter_properties.pop("instance_type").name == "stored", "by its id"
    assert cast.filter_properties == {**FIRST_ATTEMPT, "ignore_hosts": ["x"]}
    assert cast.request_spec.retry.to_dict() == FIRST_ATTEMPT["retry"]
    assert cast.request_spec.limits.memory_mb == 4096
    assert cast.legacy_spec["instance_properties"]["uuid"] == instance.uuid
    assert [each.source_type for each in cast.block_device_mapping] == ["image"]
    row = conductor.row(instance)
    assert (row.vm_state, row.task_state, row.host) == ("building", "scheduling", None)
    assert row.availability_zone == cast.instance.availability_zone == "az-of-a"


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
        server_rows.create_instance(conn, recorded.copy())
        server_rows.create_build_request(conn, recorded)
    cast = built_on_a(conductor, [recorded])
    data, before = (
        each.obj_to_primitive()["nova_object.data"] for each in (cast.instance, recorded)
    )
    changed = {key for key in before if data[key] != before[key]}
    assert changed <= {"availability_zone", "created_at", "flavor"}


@pytest.mark.parametrize(
    ("given", "networks"),
    [
        (None, None),
        ([], None),
        ([list(NETWORK)], [NETWORK]),
        (wire_objects.networks_of([("n", None, None, None)]), [("n", None, None, None)]),
    ],
)
def test_networks_as_tuples_become_objects(conductor, given, networks):
    sent = built_on_a(conductor, requested_networks=given).requested_networks
    assert wire_objects.network_tuples(sent) == networks


def test_the_groups_hosts_are_in_the_request(conductor):
    asked_for = conductor.asked_for(2)
    with conductor.database.write() as conn:
        group = groups.create(conn, "g", "anti-affinity")
        server_rows.join_group(conn, group.uuid, [each.uuid for each in asked_for])
        instances.update(conn, asked_for[1].uuid, host="taken")
    built_on_a(conductor, asked_for[:1], {"group_hosts": ["given"], "group_updated": True})
    (spec,) = conductor.scheduler.asked
    assert (spec.instance_group.uuid, spec.instance_group.policy) == (group.uuid, "anti-affinity")
    assert sorted(spec.instance_group.hosts) == ["given", "taken"]
    assert sorted(spec.instance_group.members) == sorted(each.uuid for each in asked_for)


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("build_instances", {"instances": [], "filter_properties": {}}),
        ("schedule_and_build_instances", {"build_requests": [], "request_specs": []}),
        ("rebuild_instance", {"instance": builders.instance()}),
    ],
)
def test_an_argument_that_nobody_knows_is_named(conductor, method, arguments):
    with pytest.raises(errors.InvalidRequest, match="spped"):
        call(getattr(conductor.manager, method), None, **arguments, spped=9)


# --- new servers ------------------------------------------------------------------------------


def test_a_build_of_todays_api(conductor):
    wanted = conductor.wanted(2)
    resources = [objects.RequestGroup(requester_id=name) for name in ("r", "unheard-of")]
    specs = specs_of(wanted, scheduler_hints={"k": ["v"]}, requested_resources=resources)
    allocation = json.dumps({"allocations": {}, "mappings": {"r": ["p1"]}})
    first, _ = started_on_a(conductor, wanted, specs, allocation, tags=[])
    assert conductor.scheduler.asked == [specs[0]]
    providers = [each.provider_uuids for each in first.request_spec.requested_resources]
    assert providers == [["p1"], []]
    specs[0].requested_resources[0].provider_uuids = ["p1"]
    assert first.filter_properties == FIRST_ATTEMPT
    assert first.request_spec.obj_to_primitive() == specs[0].obj_to_primitive()
    assert first.legacy_spec["instance_properties"]["uuid"] == wanted[0].instance_uuid
    assert conductor.row(wanted[1].instance).availability_zone == "az-of-b"


def test_servers_without_a_request_of_their_own_are_refused_before_hosts_are_asked_for(conductor):
    wanted = conductor.wanted(2)
    with pytest.raises(errors.InvalidRequest, match="request_specs: 1 for 2 servers"):
        start(conductor, wanted, specs_of(wanted[:1]))
    assert conductor.scheduler.asked == []


def test_a_build_that_is_cancelled_meanwhile_leaves_nothing(conductor):
    wanted, asked = conductor.wanted(2), []
    cancelled = wanted[0].instance_uuid

    def cancel_first():
        asked.append(cancelled)  # by each build, with its row made and before it goes to its host
        if len(asked) == 1:
            with conductor.database.write() as conn:
                server_rows.delete_build_request(conn, cancelled)
        return True

    conductor.compute.takes_spec_objects = cancel_first
    [cast] = started_on_a(conductor, wanted)
    assert cast.instance.uuid == wanted[1].instance_uuid
    assert conductor.claims.released == [(True, cancelled)]
    with conductor.database.read() as conn:
        assert instances.list_all(conn, uuids=[cancelled]) == []


def test_disks_of_the_message_are_every_servers_own(conductor):
    wanted = conductor.wanted(2)
    disk = wire_objects.BlockDeviceMapping(
        uuid=builders.UUIDS[5], source_type="image", destination_type="local", boot_index=0
    )
    disks = wire_objects.BlockDeviceMappingList(objects=[disk])
    started_on_a(conductor, wanted, block_device_mapping=disks)
    with conductor.database.read() as conn:
        [first], [second] = [server_rows.disks_of(conn, each.instance_uuid) for each in wanted]
    assert first.source_type == second.source_type == "image"
    assert first.uuid != second.uuid


# --- recordings -------------------------------------------------------------------------------


def test_the_recorded_reschedule_gives_the_recorded_cast(conductor):
    recast = builders.wire("conductor-build_instances-reschedule")
    recorded = builders.wire("compute-build_and_run_instance-v6.0-retry")
    read = objects.from_primitive
    (instance,) = conductor.asked_for(uuid=recast["instances"][0]["nova_object.data"]["uuid"])
    conductor.claims.bookable = ["cmp2"]

    build(
        conductor,
        [read(recast["instances"][0])],
        recast["filter_properties"],
        image=recast["image"],
        request_spec=read(recast["request_spec"]),
        host_lists=[[read(each) for each in host_list] for host_list in recast["host_lists"]],
    )

    ((host, cast),) = conductor.compute.casts
    assert (host, cast.node, cast.instance.uuid) == ("cmp2", recorded["node"], instance.uuid)
    assert (cast.limits, cast.host_list, cast.accel_uuids) == ({}, [], [])
    sent, expected = cast.filter_properties, recorded["filter_properties"]
    assert len(sent["retry"].pop("exc")) == 2
    del expected["retry"]["exc"]
    assert sent == expected
    ours, theirs = (
        each["nova_object.data"]
        for each in (cast.request_spec.obj_to_primitive(), recorded["request_spec"])
    )
    assert set(theirs) == set(ours)
    for name in ("availability_zone", "instance_uuid", "num_instances", "scheduler_hints"):
        assert ours[name] == theirs[name]
    assert cast.request_spec.retry.to_dict()["hosts"] == sent["retry"]["hosts"]


def test_the_rows_are_the_recorded_ones(conductor):
    recorded = json.loads((builders.WIRE / "db-after-max_retries.json").read_text())
    (instance,) = asked_for = conductor.asked_for()

    build(conductor, asked_for, tried(3, exc_reason="no space"))

    row, left = conductor.row(instance), fault(conductor, instance)
    assert {"vm_state": row.vm_state, "task_state": row.task_state} == recorded["instance"]
    key = "system_metadata.network_allocated"
    assert row.system_metadata["network_allocated"] == recorded[key]
    for name in ("code", "message", "host"):
        assert getattr(left, name) == recorded["fault"][name]
    ours, theirs = (text.splitlines() for text in (left.details, recorded["fault"]["details"]))
    assert (ours[0], ours[-1]) == (theirs[0], theirs[-1])
    assert attempts(conductor, instance) == "3"


# --- what else may be -------------------------------------------------------------------------


def test_without_placement_a_host_that_wants_booking_is_passed_over(conductor, caplog):
    claimed = builders.selection("a", allocation_request='{"allocations": {}}')
    asked_for = conductor.asked_for(mapped=False)
    build(conductor, asked_for, tried(), host_lists=[[claimed, builders.selection("b")]])
    assert [host for host, _ in conductor.compute.casts] == ["b"]
    assert "has no Placement client" in caplog.text


@pytest.mark.parametrize(("api_version", "casts"), [(11, 1), (12, 0), (None, 0)])
def test_an_api_from_before_build_requests_needs_none(conductor, api_version, casts):
    asked_for = conductor.asked_for(mapped=False)
    if api_version is not None:
        with conductor.database.write() as conn:
            services.get_or_create(conn, "api", "nova-osapi_compute", "api", api_version)
    conductor.scheduler.answer = [[builders.selection("a")]]
    build(conductor, asked_for)
    assert len(conductor.compute.casts) == casts


def test_what_operators_grep_for_is_logged(conductor, caplog):
    conductor.scheduler.answer = NO_VALID_HOST
    with caplog.at_level(logging.WARNING):
        build(conductor, conductor.asked_for())
    assert [entry.getMessage() for entry in caplog.records] == [
        f"Failed to compute_task_build_instances: {NO_VALID_HOST}",
        "Setting instance to ERROR state.",
    ]
    [told] = conductor.told.errors
    assert (told.task, told.reason) == ("compute_task.build_instances", str(NO_VALID_HOST))


@pytest.mark.parametrize(
    ("error", "code", "message", "has_details"),
    [
        (errors.NoValidHost(reason=""), 500, "No valid host was found. ", True),
        (errors.FlavorNotFound(flavor_id="x"), 404, "Flavor x could not be found.", False),
        (ValueError("first line\nTraceback of elsewhere"), 500, "first line", True),
        (KeyError(), 500, "KeyError", True),
        (errors.NoValidHost(reason="", code="x"), 500, "No valid host was found. ", True),
    ],
)
def test_an_error_becomes_a_fault(error, code, message, has_details):
    left = errors.Fault.from_error(error)
    assert (left.code, left.message, bool(left.details)) == (code, message, has_details)
