"""Captured traffic is read completely and emitted again as it came."""

import copy
import json

import pytest

from conductor_stub import wire_objects  # noqa: F401 - known by its import
from scheduler import errors, objects
from scheduler.objects import registry
from tests.unit.objects import wire_samples

# Classes that only occur in messages for other services; read only where they are nested.
OTHER_SERVICES = {"BuildRequest", "EC2Ids", "InstanceInfoCache", "Migration", "TagList"}
ENVELOPES = [
    pytest.param(envelope, id=f"{name}-{number}-{envelope[registry.NAME_KEY]}")
    for name in wire_samples.names()
    for number, envelope in enumerate(wire_samples.envelopes(wire_samples.load(name)))
    if envelope[registry.NAME_KEY] not in OTHER_SERVICES
]


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_every_captured_object_comes_back_as_it_was(envelope):
    if envelope[registry.NAME_KEY].endswith("Payload"):
        with pytest.raises(errors.UnsupportedObjectError):
            objects.from_primitive(envelope)
        return
    obj = objects.from_primitive(envelope)
    expected = wire_samples.comparable(envelope)
    assert wire_samples.comparable(obj.obj_to_primitive()) == expected
    assert wire_samples.comparable(obj.copy().obj_to_primitive()) == expected


def test_legacy_dicts_are_those_of_a_real_client():
    spec = wire_samples.rich()
    # This client had no cell and no aggregates in its destination.
    spec.requested_destination = objects.Destination(host="cmp2", node="cmp2")
    args = wire_samples.load("select_destinations-v4.0-rich.request")["args"]
    for ours, name in (
        (spec.to_legacy_request_spec_dict(), "request_spec"),
        (spec.to_legacy_filter_properties_dict(), "filter_properties"),
    ):
        sent = json.loads(json.dumps(ours, default=_on_wire))
        assert wire_samples.without_changes(sent) == wire_samples.without_changes(args[name])


def _on_wire(value):
    """What the RPC layer makes of values that JSON lacks."""
    if isinstance(value, set):
        return sorted(value)
    if hasattr(value, "obj_to_primitive"):
        return value.obj_to_primitive()
    return value.strftime("%Y-%m-%dT%H:%M:%S.%f")


@pytest.mark.parametrize("copied", [objects.RequestSpec.copy, copy.deepcopy, copy.copy])
def test_copies_share_nothing_that_can_change(copied):
    original = wire_samples.rich()
    before = original.obj_to_primitive()
    clone = copied(original)
    clone.instance_group.hosts.append("other")
    clone.flavor.extra_specs["added"] = "1"
    clone.numa_topology.cells[0].pcpuset.add(99)
    clone.limits.vcpu = 1
    clone.scheduler_hints["group"].append("x")
    clone.force_hosts = ["h"]
    assert original.obj_to_primitive() == before
