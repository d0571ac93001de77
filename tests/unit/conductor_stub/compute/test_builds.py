"""Builds: orders in, rows and messages out."""

from __future__ import annotations

import threading

import pytest

from scheduler import errors, objects
from scheduler.db import instances
from scheduler.rpc.context import RequestContext
from tests.unit.conductor_stub.compute.fleets import an_instance

BIG = 10**6


def test_a_build_ends_active_and_is_announced(fleet, ends):
    instance = an_instance(fleet.database)
    waited: list[float] = []
    fleet.order(fleet.make(pause=waited.append, build_seconds=3), instance)
    row = fleet.row(instance.uuid)
    assert (row.vm_state, row.task_state, row.host, row.node) == (
        "active",
        None,
        fleet.first,
        fleet.first,
    )
    assert fleet.node().vcpus_used == 1
    assert waited == [3]
    assert ends.news == [("update", fleet.first, [instance.uuid])]


@pytest.mark.parametrize("cause", ["refusal", "failure"])
@pytest.mark.parametrize(
    ("host_list", "expected"),
    [(None, [None]), ([], [[]]), ([objects.Selection(service_host="h9", nodename="h9")], ["h9"])],
)
def test_what_cannot_be_built_goes_back_to_the_conductor(fleet, ends, cause, host_list, expected):
    memory_mb = BIG if cause == "refusal" else 512
    instance = an_instance(fleet.database, memory_mb=memory_mb)
    fleet.order(fleet.make(fail_rate=1.0), instance, host_list=host_list, security_groups=["sg"])
    order = ends.orders[instance.uuid]
    sent = order["host_lists"]
    assert expected == ([s.service_host for s in sent[0]] if host_list else sent)
    assert isinstance(order["request_spec"], objects.RequestSpec)
    assert order["instances"][0].host is None
    assert order["security_groups"] == ["sg"]
    assert order["context"].user_id == "u"
    retry = order["filter_properties"]["retry"]
    assert retry["hosts"] == [[fleet.first, fleet.first]]
    reason = "MB of memory requested" if cause == "refusal" else "failed to spawn"
    assert reason in retry["exc_reason"]
    assert f"Build of instance {instance.uuid} was re-scheduled: " in retry["exc"][-1]
    row = fleet.row(instance.uuid)
    assert (row.vm_state, row.task_state, row.host) == ("building", "scheduling", None)
    node = fleet.node()
    assert (node.vcpus_used, node.running_vms) == (0, 0)
    assert node.stats["failed_builds"] == "1"


def test_newtons_orders_go_back_without_a_host_list(fleet, ends):
    instance = an_instance(fleet.database)
    fleet.order(fleet.make(fail_rate=1.0), instance, request_spec={"image": {}})
    order = ends.orders[instance.uuid]
    assert "host_lists" not in order
    assert "request_spec" not in order


@pytest.mark.parametrize("properties", [{}, None, {"retry": None}, {"retry": {}}])
def test_without_retry_a_failure_is_final(fleet, ends, properties):
    instance = an_instance(fleet.database)
    fleet.order(fleet.make(fail_rate=1.0), instance, filter_properties=properties)
    row = fleet.row(instance.uuid)
    assert (row.vm_state, row.task_state, row.host) == ("error", None, None)
    with fleet.database.read() as conn:
        fault = instances.latest_fault(conn, instance.uuid)
    assert fault is not None
    assert "failed to spawn" in fault.message
    assert instance.uuid not in ends.orders


def test_the_seed_decides_which_builds_fail(fleet):
    def outcomes() -> list[str]:
        hosts = fleet.make(fail_rate=0.5)
        made = [an_instance(fleet.database) for _ in range(8)]
        for instance in made:
            fleet.order(hosts, instance, filter_properties={})
        return [fleet.row(instance.uuid).vm_state for instance in made]

    first = outcomes()
    assert set(first) == {"active", "error"}
    assert outcomes() == first


def test_an_instance_deleted_during_its_build_is_cleaned_up_silently(fleet, ends):
    instance = an_instance(fleet.database)
    context = RequestContext(user_id="u", project_id="p")

    def delete(seconds: float) -> None:
        assert fleet.node().running_vms == 1
        fleet.hosts.hosts[fleet.first].terminate(context, instance.uuid)

    fleet.order(fleet.make(pause=delete, build_seconds=1), instance)
    with pytest.raises(errors.InstanceNotFound):
        fleet.row(instance.uuid)
    assert fleet.node().running_vms == 0
    assert ends.news == [("delete", fleet.first, instance.uuid)]
    assert instance.uuid not in ends.orders


def test_a_second_order_for_the_same_instance_does_nothing(fleet, ends):
    instance = an_instance(fleet.database)
    fleet.order(fleet.hosts, instance)
    launched = fleet.row(instance.uuid).updated_at
    fleet.order(fleet.hosts, instance)
    assert fleet.node().running_vms == 1
    assert fleet.row(instance.uuid).updated_at == launched
    assert ends.news == [("update", fleet.first, [instance.uuid])]


def test_no_more_builds_at_once_than_configured(fleet):
    gate, running, most = threading.Event(), threading.Semaphore(0), []

    def pause(seconds: float) -> None:
        running.release()
        most.append(fleet.node().current_workload)
        assert gate.wait(30)

    hosts = fleet.make(pause=pause, build_seconds=1, max_concurrent_builds=2)
    made = [an_instance(fleet.database) for _ in range(4)]
    threads = [threading.Thread(target=fleet.order, args=(hosts, each)) for each in made]
    for thread in threads:
        thread.start()
    for _ in range(2):
        assert running.acquire(timeout=30)
    assert fleet.node().current_workload == 2
    gate.set()
    for thread in threads:
        thread.join(30)
    assert max(most) <= 2
    assert fleet.node().running_vms == 4
    assert fleet.node().current_workload == 0


def test_what_would_fail_anywhere_is_not_tried_elsewhere(fleet, ends):
    instance = an_instance(fleet.database)
    fleet.order(fleet.make(abort_rate=1.0), instance)
    row = fleet.row(instance.uuid)
    assert (row.vm_state, row.task_state, row.host) == ("error", None, None)
    with fleet.database.read() as conn:
        fault = instances.latest_fault(conn, instance.uuid)
    assert f"Build of instance {instance.uuid} aborted: " in fault.message
    assert "has no more networks" in fault.message
    assert fleet.node().running_vms == 0
    assert instance.uuid not in ends.orders


def test_an_order_to_delete_follows_the_instance(fleet):
    instance = an_instance(fleet.database)
    fleet.order(fleet.hosts, instance)
    context = RequestContext(user_id="u", project_id="p")
    fleet.hosts.hosts[fleet.second].terminate(context, instance.uuid)
    assert fleet.node().running_vms == 0
    with pytest.raises(errors.InstanceNotFound):
        fleet.row(instance.uuid)
