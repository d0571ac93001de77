"""``schedule_and_build_instances``: (what is wanted, what becomes of it) -> rows and casts."""

from __future__ import annotations

import json

import pytest

from conductor_stub import server_rows
from scheduler import errors, objects
from scheduler.db import instances
from scheduler.rpc.context import RequestContext
from tests.unit.conductor_stub import builders
from tests.unit.conductor_stub.driving import attempts, fault, request_spec

NO_VALID_HOST = errors.NoValidHost(reason="There are not enough hosts available.")


def specs_of(wanted, **changes):
    return [request_spec(each.instance, num_instances=len(wanted), **changes) for each in wanted]


def start(conductor, wanted, specs=None, **arguments):
    conductor.manager.schedule_and_build_instances(
        RequestContext(user_id="user", project_id="project"),
        build_requests=wanted,
        request_specs=specs_of(wanted) if specs is None else specs,
        image={"id": "image"},
        admin_password="secret",
        injected_files=[],
        requested_networks=None,
        **arguments,
    )


def cancel(conductor, uuid):
    with conductor.database.write() as conn:
        server_rows.delete_build_request(conn, uuid)


def states(conductor, wanted):
    """What each is in, None for what is not there, and the cell it is mapped to."""
    found = []
    with conductor.database.read() as conn:
        for each in wanted:
            mapping = server_rows.get_instance_mapping(conn, each.instance_uuid)
            rows = instances.list_all(conn, uuids=[each.instance_uuid])
            cell_id = mapping.cell_id if mapping else None
            found.append((rows[0].vm_state if rows else None, cell_id))
    return found


def is_awaited(conductor, wanted):
    with conductor.database.read() as conn:
        return bool(server_rows.list_build_requests(conn, [wanted.instance_uuid]))


def test_every_server_is_made_in_the_cell_of_its_host_and_built(conductor):
    wanted = conductor.wanted(3)
    chosen = {name: builders.selection(name) for name in "abc"}
    conductor.scheduler.answer = [
        [chosen["a"], chosen["b"]],
        [chosen["b"]],
        [chosen["c"], chosen["a"]],
    ]
    specs = specs_of(wanted, scheduler_hints={"k": ["v"]})

    start(conductor, wanted, specs)

    assert conductor.scheduler.asked == [specs[0]]
    assert states(conductor, wanted) == [("building", conductor.cell_id)] * 3
    assert not any(is_awaited(conductor, each) for each in wanted)
    assert [host for host, _ in conductor.compute.casts] == ["a", "b", "c"]
    _, first = conductor.compute.casts[0]
    assert first.host_list == [chosen["b"]]
    assert first.filter_properties == {
        "scheduler_hints": {"k": "v"},
        "retry": {"num_attempts": 1, "hosts": [["a", "a"]]},
        "limits": {"memory_mb": 4096},
    }
    assert objects.to_primitive(first.request_spec) == objects.to_primitive(specs[0])
    assert first.legacy_spec["instance_properties"]["uuid"] == wanted[0].instance_uuid
    assert attempts(conductor, wanted[0].instance) == "1"
    assert conductor.row(wanted[2].instance).availability_zone == "az-of-c"


def test_without_a_host_for_all_of_them_all_are_in_cell0(conductor):
    wanted = conductor.wanted(2)
    conductor.scheduler.answer = NO_VALID_HOST

    start(conductor, wanted)

    assert states(conductor, wanted) == [("error", conductor.cell0_id)] * 2
    assert not any(is_awaited(conductor, each) for each in wanted)
    assert fault(conductor, wanted[1].instance).message == str(NO_VALID_HOST)
    told, _ = conductor.told.errors
    uuid = wanted[0].instance_uuid
    assert (told.task, told.instance_uuid) == ("compute_task.build_instances", uuid)
    assert (told.error, told.spec.instance_uuid) == (NO_VALID_HOST, uuid)


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        pytest.param(["a", "nowhere", "c"], "Host 'nowhere' is not mapped", id="host in no cell"),
        pytest.param(["a", None, "c"], "The scheduler named no host", id="no host"),
    ],
)
def test_one_that_has_no_cell_does_not_stop_the_others(conductor, answers, reason):
    wanted = conductor.wanted(3)
    conductor.scheduler.answer = [[builders.selection(name)] if name else [] for name in answers]

    start(conductor, wanted)

    built = ("building", conductor.cell_id)
    assert states(conductor, wanted) == [built, ("error", conductor.cell0_id), built]
    assert reason in fault(conductor, wanted[1].instance).message
    assert conductor.claims.released == [(True, wanted[1].instance_uuid)]


def _cancelled_before(conductor, uuid):
    cancel(conductor, uuid)


def _cancelled_meanwhile(conductor, uuid):
    asked = []  # each build asks this after its row was made, and before it goes to its host

    def cancel_first() -> bool:
        asked.append(uuid)
        if len(asked) == 1:
            cancel(conductor, uuid)
        return True

    conductor.compute.takes_spec_objects = cancel_first


@pytest.mark.parametrize("cancelled", [_cancelled_before, _cancelled_meanwhile])
def test_a_cancelled_server_leaves_nothing_and_the_others_are_built(conductor, cancelled):
    wanted = conductor.wanted(2)
    conductor.scheduler.answer = [[builders.selection("a")], [builders.selection("b")]]
    cancelled(conductor, wanted[0].instance_uuid)

    start(conductor, wanted)

    assert states(conductor, wanted)[0][0] is None
    assert conductor.claims.released == [(True, wanted[0].instance_uuid)]
    assert [host for host, _ in conductor.compute.casts] == ["b"]


def test_the_host_knows_the_providers_of_the_resources(conductor):
    wanted = conductor.wanted()
    allocation = {"allocations": {}, "mappings": {"r": ["p1"]}}
    conductor.scheduler.answer = [
        [builders.selection("a", allocation_request=json.dumps(allocation))]
    ]
    groups_wanted = [
        objects.RequestGroup(requester_id="r"),
        objects.RequestGroup(requester_id="unheard-of"),
    ]

    start(conductor, wanted, specs_of(wanted, requested_resources=groups_wanted))

    ((_, cast),) = conductor.compute.casts
    assert [each.provider_uuids for each in cast.request_spec.requested_resources] == [["p1"], []]


def test_disks_of_the_message_are_every_servers_own(conductor):
    wanted = conductor.wanted(2)
    disk = objects.BlockDeviceMapping(
        uuid=builders.UUIDS[5], source_type="image", destination_type="local", boot_index=0
    )
    conductor.scheduler.answer = [[builders.selection("a")], [builders.selection("b")]]

    start(
        conductor,
        wanted,
        block_device_mapping=objects.BlockDeviceMappingList(objects=[disk]),
    )

    with conductor.database.read() as conn:
        disks = [list(server_rows.disks_of(conn, each.instance_uuid)) for each in wanted]
    assert [[each.source_type for each in some] for some in disks] == [["image"], ["image"]]
    assert disks[0][0].uuid != disks[1][0].uuid


def test_the_recorded_request_is_understood(conductor):
    recorded = builders.wire("conductor-schedule_and_build_instances")
    arguments = {
        name: objects.from_primitive(value)
        if isinstance(value, dict) and name != "image"
        else value
        for name, value in recorded.items()
        if name not in ("build_requests", "request_specs")
    }
    (request,) = [objects.from_primitive(each) for each in recorded["build_requests"]]
    specs = [objects.from_primitive(each) for each in recorded["request_specs"]]
    request.instance.host = request.instance.node = None
    conductor.wanted(0)
    with conductor.database.write() as conn:
        server_rows.create_build_request(conn, request.instance)
    conductor.scheduler.answer = [[builders.selection("a")]]

    conductor.manager.schedule_and_build_instances(
        RequestContext(), build_requests=[request], request_specs=specs, **arguments
    )

    ((host, cast),) = conductor.compute.casts
    assert (host, cast.admin_password) == ("a", "s3cret")
    assert cast.requested_networks[0].network_id == "b5c1c8a0-0000-4000-8000-00000000c0de"
    assert objects.to_primitive(cast.request_spec) == objects.to_primitive(specs[0])
    assert [each.device_name for each in cast.block_device_mapping] == ["/dev/vda"]
