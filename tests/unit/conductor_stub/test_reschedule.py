"""Alternates: (what was left, which of them can be booked) -> where the instance goes."""

from __future__ import annotations

import json

import pytest

from scheduler import objects
from tests.unit.conductor_stub import builders
from tests.unit.conductor_stub.driving import attempts, build, fault, tried

ALLOCATION = {
    "allocations": {"rp": {"resources": {"VCPU": 1}}},
    "mappings": {"": ["rp"], "r": ["p1"]},
}
EXHAUSTED = (
    "Exceeded maximum number of retries. Exhausted all hosts available for retrying build "
    "failures for instance {}."
)


def needs_booking(host):
    return builders.selection(
        host, allocation_request=json.dumps(ALLOCATION), allocation_request_version="1.36"
    )


def reschedule(conductor, host_lists, count=1, properties=None, spec=None):
    """A build that failed on cmp0 and was taken out of its build request long ago."""
    asked_for = conductor.asked_for(count, mapped=False)
    build(conductor, asked_for, properties or tried(), request_spec=spec, host_lists=host_lists)
    return asked_for


def test_the_next_alternate_is_taken_without_asking_the_scheduler(conductor):
    alternates = [builders.selection("a"), builders.selection("b")]

    (instance,) = reschedule(conductor, [alternates])

    ((host, cast),) = conductor.compute.casts
    assert (host, cast.host_list) == ("a", alternates[1:])
    assert cast.filter_properties["retry"] == {
        "num_attempts": 2,
        "hosts": [["cmp0", "cmp0"], ["a", "a"]],
    }
    assert conductor.scheduler.asked == []
    assert attempts(conductor, instance) == "2"


@pytest.mark.parametrize("host_lists", [[[]], [None], []])
def test_without_an_alternate_the_build_is_over(conductor, host_lists):
    (instance,) = reschedule(conductor, host_lists)

    assert fault(conductor, instance).message == EXHAUSTED.format(instance.uuid)
    assert conductor.compute.casts == []
    assert attempts(conductor, instance) == "2"


@pytest.mark.parametrize(
    ("hosts", "bookable", "goes_to", "left"),
    [
        ("abc", "abc", "a", "bc"),
        ("abc", "bc", "b", "c"),
        ("abc", "c", "c", ""),
        ("abc", "", None, ""),
    ],
)
def test_an_alternate_that_cannot_be_booked_is_skipped(conductor, hosts, bookable, goes_to, left):
    conductor.claims.bookable = bookable

    (instance,) = reschedule(conductor, [[needs_booking(host) for host in hosts]])

    if goes_to is None:
        assert fault(conductor, instance).message == EXHAUSTED.format(instance.uuid)
    else:
        ((host, cast),) = conductor.compute.casts
        assert host == goes_to
        assert [each.service_host for each in cast.host_list] == list(left)


def test_without_placement_a_host_that_wants_booking_is_passed_over(conductor, caplog):
    reschedule(conductor, [[needs_booking("a"), builders.selection("b")]])

    assert [host for host, _ in conductor.compute.casts] == ["b"]
    assert "has no Placement client" in caplog.text


@pytest.mark.parametrize(
    ("properties", "max_attempts", "built", "reason"),
    [
        pytest.param(tried(1), 3, True, None, id="second of three"),
        pytest.param(tried(2), 3, True, None, id="third of three"),
        pytest.param(tried(3), 3, False, "Exceeded max scheduling attempts 3", id="fourth"),
        pytest.param(tried(2), 1, True, None, id="counting is off"),
        pytest.param(
            {**tried(3), "force_hosts": ["a"]}, 3, True, None, id="forced host is not counted"
        ),
    ],
)
def test_alternates_and_attempts_both_end_a_build(
    conductor, properties, max_attempts, built, reason
):
    conductor.options = {"scheduler__max_attempts": max_attempts}

    (instance,) = reschedule(conductor, [[builders.selection("a")]], properties=properties)

    assert bool(conductor.compute.casts) is built
    if reason:
        assert reason in fault(conductor, instance).message


def test_the_recorded_reschedule_gives_the_recorded_cast(conductor):
    """The recorded message of a compute leads to the recorded cast, field by field."""
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
    assert (host, cast.node) == ("cmp2", recorded["node"])
    assert (cast.limits, cast.host_list, cast.accel_uuids) == ({}, [], [])
    sent, expected = cast.filter_properties, recorded["filter_properties"]
    assert len(sent["retry"].pop("exc")) == 2
    del expected["retry"]["exc"]
    assert sent == expected
    ours, theirs = (
        each["nova_object.data"]
        for each in (objects.to_primitive(cast.request_spec), recorded["request_spec"])
    )
    assert ours["retry"]["nova_object.data"]["num_attempts"] == 2
    assert _hosts(ours) == _hosts(theirs) == ["cmp1", "cmp2"]
    assert set(theirs) == set(ours)
    for name in ("availability_zone", "instance_uuid", "num_instances", "scheduler_hints"):
        assert ours[name] == theirs[name]
    assert instance.uuid == cast.instance.uuid


def _hosts(spec):
    nodes = spec["retry"]["nova_object.data"]["hosts"]["nova_object.data"]["objects"]
    return [each["nova_object.data"]["host"] for each in nodes]
