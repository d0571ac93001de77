"""Captured traffic is read completely and emitted again as it came."""

from __future__ import annotations

import copy
import json

import pytest

from scheduler import errors, objects
from scheduler.objects import registry
from tests.unit.objects import wire_samples

# Classes that only occur in messages for other services; read only where they are nested.
OTHER_SERVICES = {"BuildRequest", "EC2Ids", "InstanceInfoCache", "Migration", "TagList"}


def _is_ours(envelope):
    name = envelope[registry.NAME_KEY]
    return name not in OTHER_SERVICES and not name.endswith("Payload")


ENVELOPES = [
    pytest.param(envelope, id=f"{name}-{number}-{envelope[registry.NAME_KEY]}")
    for name in wire_samples.names()
    for number, envelope in enumerate(wire_samples.envelopes(wire_samples.load(name)))
    if _is_ours(envelope)
]


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_every_captured_object_comes_back_as_it_was(envelope):
    obj = objects.from_primitive(envelope)
    expected = wire_samples.comparable(envelope)
    assert wire_samples.comparable(objects.to_primitive(obj)) == expected
    assert wire_samples.comparable(objects.to_primitive(obj.copy())) == expected


def test_no_class_of_the_samples_is_forgotten():
    seen = {param.values[0][registry.NAME_KEY] for param in ENVELOPES}
    assert seen <= set(registry.names())
    assert {"RequestSpec", "Selection", "Instance", "InstanceGroup", "BlockDeviceMapping"} <= seen


@pytest.mark.parametrize("name", wire_samples.names("*select_destinations*request"))
def test_requests_are_read(name):
    args = wire_samples.decoded(wire_samples.load(name)["args"])
    spec = args.get("spec_obj") or objects.RequestSpec.from_primitives(
        args["request_spec"], args["filter_properties"]
    )
    assert isinstance(spec, objects.RequestSpec)
    assert (spec.vcpus, spec.memory_mb) in ((1, 2048), (4, 4096))
    assert spec.instance_uuid.startswith("f4a0f8c0-0000-4000-8000-")


@pytest.mark.parametrize("name", wire_samples.names("*notification*"))
def test_payloads_are_not_ours_to_read(name):
    payloads = [
        e
        for e in wire_samples.envelopes(wire_samples.load(name))
        if e[registry.NAME_KEY].endswith("Payload")
    ]
    for payload in payloads:
        with pytest.raises(errors.UnsupportedObjectError):
            objects.from_primitive(payload)


def test_selection_gives_the_dict_reply():
    old = wire_samples.load("select_destinations-v4.3-rich.reply")["result"]
    new = wire_samples.load("select_destinations-rich.reply")["result"]
    selection = objects.from_primitive(new[0][0])
    assert wire_samples.comparable([selection.to_dict()]) == wire_samples.comparable(old)


def test_legacy_dicts_are_those_of_a_real_client():
    rich = wire_samples.load("select_destinations-rich.request")
    spec = objects.from_primitive(rich["args"]["spec_obj"])
    # This client had no cell and no aggregates in its destination.
    spec.requested_destination = objects.Destination(host="cmp2", node="cmp2")
    args = wire_samples.load("select_destinations-v4.0-rich.request")["args"]
    sent = json.loads(json.dumps(spec.to_legacy_request_spec_dict(), default=_on_wire))
    assert wire_samples.without_changes(sent) == wire_samples.without_changes(args["request_spec"])
    sent = json.loads(json.dumps(spec.to_legacy_filter_properties_dict(), default=_on_wire))
    assert wire_samples.without_changes(sent) == wire_samples.without_changes(
        args["filter_properties"]
    )


def _on_wire(value):
    """What the RPC layer makes of values that JSON lacks."""
    if isinstance(value, set):
        return sorted(value)
    if hasattr(value, "obj_to_primitive"):
        return value.obj_to_primitive()
    return value.strftime("%Y-%m-%dT%H:%M:%S.%f")


def test_copies_share_nothing_that_can_change():
    original = objects.from_primitive(
        wire_samples.load("select_destinations-rich.request")["args"]["spec_obj"]
    )
    before = objects.to_primitive(original)
    for clone in (original.copy(), copy.deepcopy(original), copy.copy(original)):
        clone.instance_group.hosts.append("other")
        clone.flavor.extra_specs["added"] = "1"
        clone.numa_topology.cells[0].pcpuset.add(99)
        clone.limits.vcpu = 1
        clone.scheduler_hints["group"].append("x")
        clone.force_hosts = ["h"]
        assert objects.to_primitive(original) == before
