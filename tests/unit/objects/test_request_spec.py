"""Requests: reading what is unset, and the legacy dicts both ways."""

import pytest

from scheduler import errors, objects

FLAVOR = {"vcpus": 2, "memory_mb": 512, "root_gb": 10, "ephemeral_gb": 1, "swap": 64}
NOTHING_LIMITED = {"numa_topology": None, "vcpu": None, "disk_gb": None, "memory_mb": None}
GROUP = {
    "group_updated": True,
    "group_hosts": ["h"],
    "group_policies": ["affinity"],
    "group_members": ["m"],
    "group_uuid": "g",
}


def _read(request_spec=None, filter_properties=None):
    return objects.RequestSpec.from_primitives(request_spec or {}, filter_properties or {})


def test_the_least_request():
    assert objects.to_plain(_read()) == {
        **dict.fromkeys(("image", "ignore_hosts", "force_hosts", "force_nodes", "retry")),
        **dict.fromkeys(("requested_destination", "requested_resources", "instance_group")),
        "num_instances": 1,
        "limits": NOTHING_LIMITED,
        "scheduler_hints": {},
    }


@pytest.mark.parametrize("field", sorted(objects.RequestSpec.FIELDS))
def test_every_unset_field_can_be_read(field):
    empty = {
        "num_instances": 1,
        "security_groups": [],
        "requested_networks": [],
        "request_level_params": {},
        "network_metadata": {"physnets": [], "tunneled": False},
    }
    assert objects.to_plain(getattr(objects.RequestSpec(), field)) == empty.get(field)


def test_sizes_are_those_of_the_flavor():
    spec = objects.RequestSpec(flavor=objects.Flavor(**FLAVOR))
    assert {name: getattr(spec, name) for name in FLAVOR} == FLAVOR
    assert objects.RequestSpec(flavor=objects.Flavor()).memory_mb == 0
    with pytest.raises(errors.InvalidRequest, match="RequestSpec.flavor"):
        _ = objects.RequestSpec().vcpus


@pytest.mark.parametrize(
    ("hints", "value"),
    [
        *[(None, "default"), ({}, "default"), ({"other": ["x"]}, "default")],
        *[({"h": ["x"]}, "x"), ({"h": ["x", "y"]}, ["x", "y"]), ({"h": []}, [])],
    ],
)
def test_hints_are_read_one_by_one(hints, value):
    spec = objects.RequestSpec(scheduler_hints=hints)
    assert spec.get_scheduler_hint("h", "default") == value


LIMITS = {"memory_mb": 98304.9, "vcpu": 0, "disk_gb": None, "x": 1}
RETRY = {"num_attempts": 2, "hosts": [["h", "n"], ["i", None]]}
HINTS = {"a": 1, "b": True, "c": ["x", 2], "d": []}
HINTS_READ = {"a": ["1"], "b": ["True"], "c": ["x", "2"], "d": []}
LEGACY_FLAVOR = {"vcpus": "2", "colour": "blue", "extra_specs": {"a": 1}}
INSTANCE = objects.Instance(uuid="u", availability_zone="z", host="h")
NO_GROUP = {"policies": [], "policy": None, "hosts": [], "members": []}
POLICY = {"policies": ["affinity"], "policy": "affinity"}


@pytest.mark.parametrize(
    ("request_spec", "filter_properties", "field", "kept"),
    [
        ({"image": None}, {}, "image", None),
        ({"image": {}}, {}, "image", {"properties": {}}),
        ({"image": objects.ImageMeta(id="i")}, {}, "image", {"id": "i"}),
        ({"instance_type": None}, {}, "flavor", None),
        ({"instance_type": LEGACY_FLAVOR}, {}, "flavor", {"vcpus": 2, "extra_specs": {"a": "1"}}),
        ({"instance_type": objects.Flavor(vcpus=3)}, {}, "flavor", {"vcpus": 3}),
        ({"instance_properties": "text"}, {}, "instance_uuid", None),
        ({"instance_properties": {"uuid": "u"}}, {}, "instance_uuid", "u"),
        ({"instance_properties": INSTANCE}, {}, "availability_zone", "z"),
        ({}, {"scheduler_hints": None}, "scheduler_hints", None),
        ({}, {"scheduler_hints": HINTS}, "scheduler_hints", HINTS_READ),
        ({}, {"limits": LIMITS}, "limits", {**NOTHING_LIMITED, "memory_mb": 98304, "vcpu": 0}),
        ({}, {"retry": {}}, "retry", None),
        ({}, {"retry": {"num_attempts": 2}}, "retry", {}),
        ({}, {**GROUP, "group_updated": 1}, "instance_group", None),
        ({}, {"instance_group": objects.InstanceGroup(name="n")}, "instance_group", {"name": "n"}),
        ({}, GROUP, "instance_group", {"hosts": ["h"], "members": ["m"], **POLICY, "uuid": "g"}),
        ({}, {"group_updated": True, "group_hosts": None}, "instance_group", NO_GROUP),
    ],
)
def test_parts_of_dicts(request_spec, filter_properties, field, kept):
    spec = _read(request_spec, filter_properties)
    assert objects.to_plain(getattr(spec, field)) == kept


BAD_CELLS = {"uuid": "u", "numa_topology": {"cells": []}}
BAD_DEVICES = {"uuid": "u", "pci_requests": [{"count": 1}, {"count": "x"}]}


@pytest.mark.parametrize(
    ("request_spec", "filter_properties", "field"),
    [
        ({}, {"scheduler_hints": {"a": [["x"]]}}, "scheduler_hints['a'][0]"),
        ({}, {"scheduler_hints": "group"}, "scheduler_hints"),
        ({}, {"retry": {"hosts": []}}, "retry.num_attempts"),
        ({}, {"retry": {"hosts": [["h"]], "num_attempts": 1}}, "retry.hosts"),
        ({}, {"limits": {"memory_mb": "x"}}, "limits.memory_mb"),
        ({}, {"group_updated": True, "group_hosts": 5}, "group_hosts"),
        ({}, {"force_hosts": "h1"}, "force_hosts"),
        ({}, {"requested_destination": {"host": "h"}}, "requested_destination"),
        ({}, None, "filter_properties"),
        (None, {}, "request_spec"),
        ({"num_instances": "x"}, {}, "num_instances"),
        ({"instance_properties": {}}, {}, "instance_uuid"),
        ({"instance_type": {"vcpus": "x"}}, {}, "flavor.vcpus"),
        ({"instance_type": {"vcpus": None}}, {}, "flavor.vcpus"),
        ({"image": {"min_ram": None}}, {}, "image.min_ram"),
        ({"image": {"properties": {"hypervisor_type": "foo"}}}, {}, "image.properties.img_hv_type"),
        ({"instance_properties": BAD_CELLS}, {}, "numa_topology"),
        ({"instance_properties": BAD_DEVICES}, {}, "pci_requests.requests[1].count"),
    ],
)
def test_bad_dicts_are_named(request_spec, filter_properties, field):
    with pytest.raises(errors.InvalidRequest) as caught:
        objects.RequestSpec.from_primitives(request_spec, filter_properties)
    assert caught.value.kwargs["field"] == f"RequestSpec.{field}"


def test_the_way_back_of_filter_properties():
    destination = objects.Destination(host="h")
    properties = {
        **GROUP,
        "scheduler_hints": {"one": ["x"], "two": ["x", "y"], "none": []},
        "ignore_hosts": ["a"],
        "force_hosts": [],
        "force_nodes": None,
        "requested_destination": destination,
        "retry": {**RETRY, "exc": ["x"]},
        "limits": LIMITS,
    }
    assert _read({}, properties).to_legacy_filter_properties_dict() == {
        **{name: {*value} for name, value in GROUP.items() if isinstance(value, list)},
        "group_updated": True,
        "group_uuid": "g",
        "limits": {"memory_mb": 98304, "vcpu": 0},
        "retry": RETRY,
        "scheduler_hints": {"one": "x", "two": ["x", "y"], "none": []},
        "ignore_hosts": ["a"],
        "requested_destination": destination,
    }


def test_the_way_back_from_nothing():
    spec = objects.RequestSpec()
    assert spec.to_legacy_filter_properties_dict() == {}
    empty = {"image": {}, "instance_type": {}, "instance_properties": {}}
    assert spec.to_legacy_request_spec_dict() == {"num_instances": 1, **empty}
