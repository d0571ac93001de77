"""Instances that come to a host or leave it: (state, order) -> rows, messages."""

from __future__ import annotations

import pytest

from conductor_stub.compute.endpoints import ComputeEndpoint
from scheduler import errors, objects
from scheduler.db import instances
from scheduler.rpc.context import RequestContext
from tests.unit.conductor_stub.compute.fleets import an_instance

RESERVED_MB = 512
CONTEXT = RequestContext(user_id="u", project_id="p")
RETRY = {"retry": {"num_attempts": 1, "hosts": []}, "limits": {"memory_mb": 4096}}


def flavor(memory_mb=1024, **changes):
    values = {"id": 7, "name": "big", "flavorid": "b", "memory_mb": memory_mb, "vcpus": 2}
    return objects.Flavor(**{**values, "root_gb": 20, "ephemeral_gb": 0, "swap": 0, **changes})


def running(fleet, task_state="resize_prep", host=None):
    """An instance that runs on the first host and is about to move."""
    made = an_instance(fleet.database)
    fleet.order(fleet.hosts, made)
    with fleet.database.write() as conn:
        instances.update(conn, made.uuid, task_state=task_state)
    return fleet.row(made.uuid)


def prep_resize(fleet, instance, host=None, **arguments):
    values = {
        "image": {},
        "request_spec": objects.RequestSpec(instance_uuid=instance.uuid),
        "filter_properties": RETRY,
        "flavor": flavor(),
        "host_list": [],
    }
    endpoint = ComputeEndpoint(fleet.hosts.hosts[host or fleet.second], "6.5")
    endpoint.prep_resize(CONTEXT, instance, **{**values, **arguments})


@pytest.mark.parametrize(
    "form",
    [
        pytest.param({"flavor": flavor()}, id="6.0"),
        pytest.param({"flavor": None, "instance_type": flavor()}, id="5.1"),
        pytest.param(
            {
                "flavor": None,
                "instance_type": objects.to_plain(flavor()),
                "request_spec": {},
                "host_list": None,
            },
            id="4.0",
        ),
    ],
)
def test_an_instance_moves_with_everything_it_uses(fleet, ends, form):
    instance = running(fleet)
    prep_resize(fleet, instance, **form)
    assert fleet.node(fleet.first).running_vms == 0
    assert ends.news[-1] == ("delete", fleet.first, instance.uuid)
    row = fleet.row(instance.uuid)
    assert (row.host, row.vm_state, row.task_state) == (fleet.second, "active", None)
    assert (row.flavor.name, row.memory_mb, row.vcpus, row.instance_type_id) == ("big", 1024, 2, 7)
    node = fleet.node(fleet.second)
    assert (node.vcpus_used, node.local_gb_used) == (2, 20)
    assert node.memory_mb_used == 1024 + RESERVED_MB
    assert fleet.node(fleet.first).memory_mb_used == RESERVED_MB
    assert ("update", fleet.second, [instance.uuid]) in ends.news


def test_an_instance_grows_where_it_is(fleet):
    instance = running(fleet)

    prep_resize(fleet, instance, host=fleet.first, flavor=flavor(4096 - RESERVED_MB))

    assert fleet.row(instance.uuid).memory_mb == 4096 - RESERVED_MB, (
        "it does not count beside itself"
    )
    assert (fleet.node().running_vms, fleet.node().memory_mb_used) == (1, 4096)


@pytest.mark.parametrize("may_retry", [True, False])
def test_what_does_not_fit_is_moved_elsewhere_with_the_alternates(fleet, ends, may_retry):
    instance = running(fleet)
    left = [objects.Selection(service_host="c", nodename="c")]
    properties = RETRY if may_retry else {"limits": RETRY["limits"]}
    prep_resize(fleet, instance, flavor=flavor(8192), host_list=left, filter_properties=properties)
    row = fleet.row(instance.uuid)
    assert (row.host, row.vm_state, row.flavor.name) == (fleet.first, "active", "small")
    assert row.task_state == ("resize_prep" if may_retry else None)
    assert fleet.node(fleet.second).running_vms == 0
    if may_retry:
        moved = ends.moves[instance.uuid]
        retry = moved["scheduler_hint"]["filter_properties"]["retry"]
        assert [each.service_host for each in moved["host_list"]] == ["c"]
        assert moved["request_spec"].instance_uuid == instance.uuid
        assert "MB of memory" in retry["exc_reason"]
    else:
        with fleet.database.read() as conn:
            assert "MB of memory" in instances.latest_fault(conn, instance.uuid).message
        assert instance.uuid not in ends.moves


@pytest.mark.parametrize("task_state", [None, "deleting", "gone"])
def test_an_instance_that_is_not_on_its_way_is_left_alone(fleet, ends, task_state):
    instance = running(fleet, task_state)
    if task_state == "gone":
        with fleet.database.write() as conn:
            instances.destroy(conn, instance.uuid)
    prep_resize(fleet, instance)
    assert task_state == "gone" or fleet.row(instance.uuid).host == fleet.first
    assert fleet.node(fleet.second).running_vms == 0
    assert instance.uuid not in ends.moves


@pytest.mark.parametrize(
    ("state", "order", "memory_mb", "vm_state", "is_here"),
    [
        ("unshelving", "unshelve_instance", 4096, "active", True),
        ("unshelving", "unshelve_instance", 256, "shelved_offloaded", False),
        ("rebuilding", "rebuild_instance", 4096, "active", True),
        ("rebuilding", "rebuild_instance", 256, "shelved_offloaded", False),
    ],
)
def test_others_that_come_from_elsewhere(fleet, ends, state, order, memory_mb, vm_state, is_here):
    instance = an_instance(fleet.database, vm_state="shelved_offloaded", task_state=state)
    endpoint = ComputeEndpoint(fleet.hosts.hosts[fleet.second], "6.5")
    limits = {"memory_mb": memory_mb}

    if order == "unshelve_instance":
        endpoint.unshelve_instance(CONTEXT, instance, {"limits": limits})
    else:
        endpoint.rebuild_instance(CONTEXT, instance, limits, new_pass="x", recreate=True)

    row = fleet.row(instance.uuid)
    assert (row.vm_state, row.task_state) == (vm_state, None)
    assert row.host == (fleet.second if is_here else None)
    assert fleet.node(fleet.second).running_vms == int(is_here)
    if is_here:
        assert ends.news == [("update", fleet.second, [instance.uuid])]


def test_an_argument_that_nobody_knows_is_named(fleet):
    with pytest.raises(errors.InvalidRequest, match="spped"):
        prep_resize(fleet, an_instance(fleet.database), spped=9)
