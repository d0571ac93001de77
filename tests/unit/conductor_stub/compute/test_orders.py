"""Orders in the forms of all versions: (order) -> rows, and what is told."""

import re
import threading

import pytest

from conductor_stub.compute.endpoints import endpoints_of
from scheduler import errors, objects
from scheduler.db import instances
from scheduler.rpc.context import ObjectSerializer
from tests.unit.conductor_stub import builders
from tests.unit.conductor_stub.compute.fleets import CONTEXT, FIRST, SECOND, an_instance, flavor

SPEC = objects.RequestSpec(num_instances=1)
BIG = flavor(id=7, name="big", memory_mb=1024)


def served_by(fleet):
    """What the second host serves, by major version."""
    endpoints = endpoints_of(fleet.hosts.hosts[SECOND])
    return {each.target.version.partition(".")[0]: each for each in endpoints}


@pytest.mark.parametrize(
    "build",
    [
        "compute-build_and_run_instance-v6.0.cast",
        "compute-build_and_run_instance-v6.0-retry.cast",
        "derived-newton-build_and_run_instance-v4.0.cast",
    ],
)
def test_recorded_orders_are_carried_out(fleet, build):
    instance = an_instance(fleet.database)
    order = {"instance": instance.obj_to_primitive(), "node": SECOND, "limits": {}}
    (version,) = re.findall(r"-v(\d)", build)
    read = ObjectSerializer().deserialize_entity(CONTEXT, builders.wire(build) | order)
    served_by(fleet)[version].build_and_run_instance(CONTEXT, **read)
    assert fleet.row(instance.uuid).launched_on == SECOND
    end = builders.wire("compute-terminate_instance-v6.0.cast")
    read = ObjectSerializer().deserialize_entity(CONTEXT, end | {"instance": order["instance"]})
    served_by(fleet)["6"].terminate_instance(CONTEXT, **read)
    assert fleet.node(SECOND).running_vms == 0


@pytest.mark.parametrize("method", ["build_and_run_instance", "prep_resize", "terminate_instance"])
def test_an_argument_that_nobody_knows_is_named(fleet, method):
    more = {"request_spec": SPEC, "filter_properties": {}} if method == "prep_resize" else {}
    with pytest.raises(errors.InvalidRequest, match="spped"):
        fleet.order(fleet.hosts, an_instance(fleet.database), method, spped=9, **more)


@pytest.mark.parametrize(
    ("host_list", "sent"),
    [(None, [None]), ([], [[]]), ([objects.Selection(service_host="h9", nodename="h9")], [["h9"]])],
)
def test_a_failed_build_goes_back_to_the_conductor_with_all_that_came(fleet, host_list, sent):
    instance = an_instance(fleet.database)
    hosts = fleet.make(fail_rate=1.0)
    fleet.order(hosts, instance, host_list=host_list, security_groups=["sg"])
    order = fleet.ends.orders[instance.uuid]
    lists = [each and [s.service_host for s in each] for each in order["host_lists"]]
    assert (lists, order["security_groups"]) == (sent, ["sg"])
    assert (order["request_spec"].num_instances, order["context"].user_id) == (1, "u")
    assert order["instances"][0].host is None
    retry = order["filter_properties"]["retry"]
    assert retry["hosts"] == [[FIRST, FIRST]]
    assert f"Build of instance {instance.uuid} was re-scheduled: " in retry["exc"][-1]


def test_the_seed_decides_which_builds_fail(fleet):
    def outcomes():
        hosts = fleet.make(fail_rate=0.5)
        made = [an_instance(fleet.database) for _ in range(8)]
        for instance in made:
            fleet.order(hosts, instance, filter_properties={})
        return [fleet.row(instance.uuid).vm_state for instance in made]

    first = outcomes()
    assert set(first) == {"active", "error"}
    assert outcomes() == first


def test_an_instance_deleted_during_its_build_is_cleaned_up_silently(fleet):
    instance, waited = an_instance(fleet.database), []

    def delete(seconds):
        waited.append((seconds, fleet.node().running_vms))
        fleet.hosts.hosts[FIRST].terminate(CONTEXT, instance.uuid)

    fleet.order(fleet.make(pause=delete, build_seconds=3), instance)
    assert waited == [(3, 1)]
    with pytest.raises(errors.InstanceNotFound):
        fleet.row(instance.uuid)
    assert fleet.node().running_vms == 0
    assert fleet.ends.news == [("delete", FIRST, instance.uuid)]
    assert fleet.ends.orders == {}


def test_no_more_builds_at_once_than_configured_and_never_more_than_fit(fleet):
    gate, begun, most = threading.Event(), threading.Semaphore(0), []

    def pause(seconds):
        begun.release()
        most.append(fleet.node().current_workload)
        assert gate.wait(30)

    hosts = fleet.make(pause=pause, build_seconds=1, max_concurrent_builds=2)
    made = [an_instance(fleet.database) for _ in range(5)]
    made.append(made[0])  # its order is delivered twice
    limits = {"limits": {"memory_mb": 4 * 512}}  # of which the host has 512 MB for itself
    threads = [
        threading.Thread(target=fleet.order, args=(hosts, each), kwargs=limits) for each in made
    ]
    for thread in threads:
        thread.start()
    for _ in range(2):
        assert begun.acquire(timeout=30)
    assert fleet.node().current_workload == 2
    gate.set()
    for thread in threads:
        thread.join(30)
    assert max(most) <= 2
    node = fleet.node()
    assert (node.running_vms, node.memory_mb_used, node.current_workload) == (3, 2048, 0)


@pytest.mark.parametrize(
    "form",
    [
        pytest.param({"flavor": BIG}, id="6.0"),
        pytest.param({"instance_type": BIG}, id="5.1"),
        pytest.param(
            {"instance_type": objects.to_plain(BIG), "request_spec": {"num_instances": 9}}, id="4.0"
        ),
    ],
)
@pytest.mark.parametrize("limit", [4096, 512])
def test_a_resize_brings_the_new_flavor_or_goes_on_with_the_alternates(fleet, form, limit):
    instance = an_instance(fleet.database)
    fleet.order(fleet.hosts, instance)
    with fleet.database.write() as conn:
        instances.update(conn, instance.uuid, task_state="resize_prep")
    left = [objects.Selection(service_host="c", nodename="c")]
    properties = {"retry": {"num_attempts": 1, "hosts": []}, "limits": {"memory_mb": limit}}
    form = {"request_spec": objects.RequestSpec(num_instances=9), "host_list": left, **form}
    more = {"image": {}, "filter_properties": properties, **form}

    fleet.order(fleet.hosts, instance, "prep_resize", SECOND, **more)

    row = fleet.row(instance.uuid)
    if limit == 4096:
        assert (row.flavor.name, row.memory_mb, row.instance_type_id) == ("big", 1024, 7)
        return
    moved = fleet.ends.moves[instance.uuid]
    assert (row.flavor.name, moved["flavor"].name) == ("small", "big")
    assert moved["host_list"] == left
    assert moved["request_spec"].num_instances == 9
