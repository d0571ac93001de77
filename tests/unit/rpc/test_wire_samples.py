"""Recorded messages through the serializer, the endpoint and the manager, file by file."""

import json

import pytest
from oslo_messaging._drivers.common import serialize_remote_exception

from conductor_stub import wire_objects  # noqa: F401 - known by its import
from scheduler import errors, objects
from scheduler.rpc.context import RequestContext, RequestContextSerializer
from scheduler.rpc.dispatcher import SchedulerEndpoint
from tests.unit.objects import wire_samples
from tests.unit.rpc.fakes import RecordingDriver, a_selection
from tests.unit.test_manager import a_manager

SERIALIZER = RequestContextSerializer()

FANOUTS = {
    "fanout-update_aggregates.cast": (objects.Aggregate, "az-east"),
    "derived-newton-update_aggregates-v4.1.cast": (objects.Aggregate, "az-east"),
    "fanout-delete_aggregate.cast": (objects.Aggregate, "az-east"),
    "fanout-update_instance_info.cast": ("cmp1", 1),
    "fanout-update_instance_info-init_host.cast": ("cmp1", 1),
    "fanout-delete_instance_info.cast": ("cmp1", "f4a0f8c0-0000-4000-8000-000000000001"),
    "fanout-sync_instance_info.cast": ("cmp1", ["f4a0f8c0-0000-4000-8000-000000000001"]),
}


def dispatched(name, driver):
    """What the endpoint returns for the recorded message."""
    message = wire_samples.load(name)
    context = RequestContext.from_dict(_context_of(message), overwrite=False)
    arguments = {
        key: SERIALIZER.deserialize_entity(context, value) for key, value in message["args"].items()
    }
    endpoint = SchedulerEndpoint(a_manager(driver))
    return getattr(endpoint, message["method"])(context, **arguments)


def _context_of(message):
    prefix = "_context_"
    return {k.removeprefix(prefix): v for k, v in message.items() if k.startswith(prefix)}


@pytest.mark.parametrize("name", FANOUTS)
def test_broadcasts_reach_the_host_manager(name):
    driver = RecordingDriver()
    dispatched(name, driver)
    message = wire_samples.load(name)
    method, arguments, _options = driver.next_call()
    assert method == message["method"]
    sent = {**message["args"]}
    if "aggregate" in method:
        aggregates = arguments[0] if isinstance(arguments[0], list) else [arguments[0]]
        theirs = sent["aggregates"][0] if "aggregates" in sent else sent["aggregate"]
        (ours,) = [each.obj_to_primitive() for each in aggregates]
        assert wire_samples.comparable(ours) == wire_samples.comparable(theirs)
    else:
        _context, host, what = arguments
        assert host == sent["host_name"]
        theirs = next(value for key, value in sent.items() if key != "host_name")
        ours = SERIALIZER.serialize_entity(None, what)
        assert wire_samples.comparable(ours) == wire_samples.comparable(theirs)


@pytest.mark.parametrize(
    ("kind", "reply"),
    [
        ("simple", "derived-newton-select_destinations.reply"),
        ("rich", "derived-newton-select_destinations-numa.reply"),
    ],
)
def test_newton_s_reply(kind, reply):
    recorded = wire_samples.load(reply)["result"]
    limits = dict(recorded[0]["limits"])
    if "numa_topology" in limits:
        limits["numa_topology"] = objects.NUMATopologyLimits(
            cpu_allocation_ratio=16.0,
            ram_allocation_ratio=1.5,
            network_metadata=objects.NetworkMetadata(physnets={"p"}, tunneled=True),
        )
    driver = RecordingDriver()
    made = objects.SchedulerLimits.from_dict(limits)
    driver.answer = [[a_selection(limits=made, limits_exact=limits)]]
    answer = dispatched(f"derived-newton-select_destinations-v4.3-{kind}.request", driver)
    sent = SERIALIZER.serialize_entity(None, answer)
    assert wire_samples.comparable(sent) == wire_samples.comparable(recorded)


@pytest.mark.parametrize(
    ("name", "classes"),
    [
        (
            "compute-prep_resize-v6.0.cast",
            {"instance": "Instance", "flavor": "Flavor", "request_spec": "RequestSpec"},
        ),
        ("conductor-build_instances-reschedule.cast", {"request_spec": "RequestSpec"}),
        ("conductor-schedule_and_build_instances.cast", {}),
        ("derived-newton-build_instances-v1.10.cast", {}),
    ],
)
def test_messages_of_other_services_are_read_and_passed_on(name, classes):
    sent = wire_samples.load(name)["args"]
    read = SERIALIZER.deserialize_entity(None, sent)
    assert {key: type(read[key]).__name__ for key in classes} == classes
    again = SERIALIZER.serialize_entity(None, read)
    assert wire_samples.comparable(again) == wire_samples.comparable(sent)


WITH_CONTEXT = [name for name in wire_samples.names() if _context_of(wire_samples.load(name))]


@pytest.mark.parametrize("name", WITH_CONTEXT)
def test_contexts_come_and_go_unchanged(name):
    """Keys of Havana, of Newton and of today, into logs, casts and notifications."""
    theirs = _context_of(wire_samples.load(name))
    context = SERIALIZER.deserialize_context(theirs)
    ours = SERIALIZER.serialize_context(context)
    dropped = {"service_catalog"}  # filtered by type
    assert theirs.keys() <= ours.keys()
    for key in theirs.keys() - dropped:
        assert ours[key] == theirs[key], key
    logged = context.get_logging_values()
    assert (logged["request_id"], logged["user_id"]) == (theirs["request_id"], theirs["user_id"])


def test_an_error_without_a_reason_is_as_nova_rebuilds_it():
    theirs = json.loads(wire_samples.load("error-no_valid_host-empty_reason.reply")["failure"])
    error = errors.NoValidHost(reason="")
    try:
        raise error
    except errors.NovaException:
        ours = json.loads(serialize_remote_exception((type(error), error, error.__traceback__)))
    assert {**ours, "tb": None} == {**theirs, "tb": None}
    assert ours["tb"][-1] == theirs["tb"][-1]
