"""Requests: reading what is unset, hints, and the legacy dicts both ways."""

from __future__ import annotations

import types

import pytest

from scheduler import errors, objects

CONTEXT = types.SimpleNamespace(project_id="p-ctx", user_id="u-ctx")
FLAVOR = {"vcpus": 2, "memory_mb": 512, "root_gb": 10, "ephemeral_gb": 1, "swap": 64}
NOTHING_LIMITED = {"numa_topology": None, "vcpu": None, "disk_gb": None, "memory_mb": None}


def _read(request_spec=None, filter_properties=None):
    return objects.RequestSpec.from_primitives(request_spec or {}, filter_properties or {})


def test_the_least_request():
    spec = _read()
    assert objects.to_plain(spec) == {
        "image": None,
        "num_instances": 1,
        "ignore_hosts": None,
        "force_hosts": None,
        "force_nodes": None,
        "requested_destination": None,
        "retry": None,
        "limits": NOTHING_LIMITED,
        "instance_group": None,
        "scheduler_hints": {},
        "requested_resources": None,
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


def test_sizes():
    spec = objects.RequestSpec(flavor=objects.Flavor(**FLAVOR))
    assert {name: getattr(spec, name) for name in FLAVOR} == FLAVOR
    assert objects.RequestSpec(flavor=objects.Flavor()).memory_mb == 0
    with pytest.raises(errors.InvalidRequest, match="RequestSpec.flavor"):
        _ = objects.RequestSpec().vcpus


def test_request_level_params():
    params = objects.RequestLevelParams(root_required={"T"}, same_subtree=[["a", "b"]])
    spec = objects.RequestSpec(request_level_params=params)
    assert (spec.root_required, spec.root_forbidden) == ({"T"}, set())
    assert spec.same_subtree == [["a", "b"]]


@pytest.mark.parametrize(
    ("hints", "value"),
    [
        (None, "default"),
        ({}, "default"),
        ({"other": ["x"]}, "default"),
        ({"h": ["x"]}, "x"),
        ({"h": ["x", "y"]}, ["x", "y"]),
        ({"h": []}, []),
    ],
)
def test_hints_are_read_one_by_one(hints, value):
    spec = objects.RequestSpec(scheduler_hints=hints)
    assert spec.get_scheduler_hint("h", "default") == value


def test_forced_destinations_can_be_forgotten():
    spec = objects.RequestSpec(force_hosts=["h"], force_nodes=["n"])
    spec.reset_forced_destinations()
    assert (spec.force_hosts, spec.force_nodes) == (None, None)


@pytest.mark.parametrize(
    ("hints", "kept"),
    [
        (None, None),
        ({}, {}),
        (
            {"a": 1, "b": True, "c": ["x", 2], "d": []},
            {"a": ["1"], "b": ["True"], "c": ["x", "2"], "d": []},
        ),
    ],
)
def test_hints_from_dicts(hints, kept):
    assert _read({}, {"scheduler_hints": hints}).scheduler_hints == kept


@pytest.mark.parametrize(
    ("request_spec", "filter_properties", "field"),
    [
        ({}, {"scheduler_hints": {"a": {}}}, "RequestSpec.scheduler_hints['a'][0]"),
        ({}, {"scheduler_hints": {"a": None}}, "RequestSpec.scheduler_hints['a'][0]"),
        ({}, {"scheduler_hints": {"a": [["x"]]}}, "RequestSpec.scheduler_hints['a'][0]"),
        ({}, {"scheduler_hints": "group"}, "RequestSpec.scheduler_hints"),
        ({}, {"retry": {"hosts": []}}, "RequestSpec.retry.num_attempts"),
        ({}, {"retry": {"hosts": [["h"]], "num_attempts": 1}}, "RequestSpec.retry.hosts"),
        ({}, {"retry": {"hosts": 5, "num_attempts": 1}}, "RequestSpec.retry.hosts"),
        ({}, {"retry": {"hosts": [5], "num_attempts": 1}}, "RequestSpec.retry.hosts"),
        ({}, {"retry": "again"}, "RequestSpec.retry"),
        ({}, {"limits": {"memory_mb": "x"}}, "RequestSpec.limits.memory_mb"),
        ({}, {"limits": [1]}, "RequestSpec.limits"),
        ({}, {"group_updated": True, "group_hosts": 5}, "RequestSpec.group_hosts"),
        ({}, {"force_hosts": "h1"}, "RequestSpec.force_hosts"),
        ({}, {"requested_destination": {"host": "h"}}, "RequestSpec.requested_destination"),
        ({}, None, "RequestSpec.filter_properties"),
        (None, {}, "RequestSpec.request_spec"),
        ({"num_instances": "x"}, {}, "RequestSpec.num_instances"),
        ({"instance_properties": {}}, {}, "RequestSpec.instance_uuid"),
        ({"instance_properties": {"uuid": None}}, {}, "RequestSpec.instance_uuid"),
        ({"instance_type": {"vcpus": "x"}}, {}, "RequestSpec.flavor.vcpus"),
        ({"instance_type": {"vcpus": None}}, {}, "RequestSpec.flavor.vcpus"),
        ({"image": {"min_ram": None}}, {}, "RequestSpec.image.min_ram"),
        (
            {"image": {"properties": {"hypervisor_type": "foo"}}},
            {},
            "RequestSpec.image.properties.img_hv_type",
        ),
        (
            {"instance_properties": {"uuid": "u", "numa_topology": {"cells": []}}},
            {},
            "RequestSpec.numa_topology",
        ),
        (
            {"instance_properties": {"uuid": "u", "pci_requests": [{"count": 1}, {"count": "x"}]}},
            {},
            "RequestSpec.pci_requests.requests[1].count",
        ),
    ],
)
def test_bad_dicts_are_named(request_spec, filter_properties, field):
    with pytest.raises(errors.InvalidRequest) as caught:
        objects.RequestSpec.from_primitives(request_spec, filter_properties)
    assert caught.value.kwargs["field"] == field


@pytest.mark.parametrize(
    ("instance", "expected"),
    [
        (None, {}),
        ("text", {}),
        (
            {"uuid": "u", "project_id": "p"},
            {"instance_uuid": "u", "project_id": "p", "availability_zone": None},
        ),
        (
            objects.Instance(uuid="u", availability_zone="z", host="h"),
            {"instance_uuid": "u", "project_id": None, "availability_zone": "z"},
        ),
    ],
)
def test_instance_properties(instance, expected):
    values = _read({"instance_properties": instance}).set_fields()
    names = ("instance_uuid", "project_id", "availability_zone")
    assert {name: values[name] for name in names if name in values} == expected


@pytest.mark.parametrize(
    ("given", "image"),
    [
        (None, None),
        ("text", None),
        ({}, {"properties": {}}),
        (objects.ImageMeta(id="i"), {"id": "i"}),
    ],
)
def test_images(given, image):
    assert objects.to_plain(_read({"image": given}).image) == image


@pytest.mark.parametrize(
    ("given", "flavor"),
    [
        (None, None),
        ({}, {}),
        (
            {"vcpus": "2", "colour": "blue", "extra_specs": {"a": 1}},
            {"vcpus": 2, "extra_specs": {"a": "1"}},
        ),
        (objects.Flavor(vcpus=3), {"vcpus": 3}),
    ],
)
def test_flavors(given, flavor):
    spec = _read({"instance_type": given})
    assert spec.is_set("flavor") == (flavor is not None)
    assert objects.to_plain(spec.flavor) == flavor


@pytest.mark.parametrize(
    ("retry", "kept"),
    [
        (None, None),
        ({}, None),
        ({"num_attempts": 2}, {}),
        (
            {"num_attempts": 2, "hosts": [["h", "n"], ["i", None]], "exc": ["x"]},
            {"num_attempts": 2, "hosts": [["h", "n"], ["i", None]]},
        ),
    ],
)
def test_retries(retry, kept):
    spec = _read({}, {"retry": retry})
    assert (spec.retry.to_dict() if spec.retry is not None else None) == kept
    assert spec.to_legacy_filter_properties_dict().get("retry", {}) == (kept or {})


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        (None, {}),
        ({}, {}),
        (
            {"memory_mb": 98304.9, "vcpu": 0, "disk_gb": None, "x": 1},
            {"memory_mb": 98304, "vcpu": 0},
        ),
    ],
)
def test_limits(limits, kept):
    spec = _read({}, {"limits": limits})
    assert spec.limits.to_dict() == kept
    assert spec.limits.set_fields().keys() == NOTHING_LIMITED.keys()
    assert spec.to_legacy_filter_properties_dict()["limits"] == kept


MEMBERS = {"hosts": ["h"], "members": ["m"]}
GROUP = {
    "group_updated": True,
    "group_hosts": ["h"],
    "group_policies": ["affinity"],
    "group_members": ["m"],
    "group_uuid": "g",
}


@pytest.mark.parametrize(
    ("properties", "group"),
    [
        ({}, None),
        ({**GROUP, "group_updated": 1}, None),
        ({"instance_group": objects.InstanceGroup(name="n")}, {"name": "n"}),
        (GROUP, {**MEMBERS, "policies": ["affinity"], "policy": "affinity", "uuid": "g"}),
        (
            {"group_updated": True, "group_hosts": None},
            {"policies": [], "policy": None, "hosts": [], "members": []},
        ),
    ],
)
def test_groups(properties, group):
    assert objects.to_plain(_read({}, properties).instance_group) == group


def test_the_way_back_of_filter_properties():
    properties = {
        **GROUP,
        "scheduler_hints": {"one": ["x"], "two": ["x", "y"], "none": []},
        "ignore_hosts": ["a"],
        "force_hosts": [],
        "force_nodes": None,
        "requested_destination": objects.Destination(host="h"),
    }
    spec = _read({}, properties)
    assert spec.to_legacy_filter_properties_dict() == {
        "group_updated": True,
        "group_hosts": {"h"},
        "group_policies": {"affinity"},
        "group_members": {"m"},
        "group_uuid": "g",
        "limits": {},
        "scheduler_hints": {"one": "x", "two": ["x", "y"], "none": []},
        "ignore_hosts": ["a"],
        "requested_destination": spec.requested_destination,
    }


def test_the_way_back_of_the_request():
    nothing = ("availability_zone", "numa_topology", "pci_requests", "user_id")
    request_spec = {
        "num_instances": 3,
        "image": {"id": "i", "properties": {"hw_cpu_cores": "2"}},
        "instance_type": FLAVOR,
        "instance_properties": {"uuid": "u", "project_id": "p", "user_id": None},
    }
    spec = _read(request_spec)
    assert spec.to_legacy_request_spec_dict() == {
        "num_instances": 3,
        "image": {"id": "i", "properties": {"hw_cpu_cores": 2}},
        "instance_type": spec.flavor,
        "instance_properties": {
            **dict.fromkeys(nothing),
            "uuid": "u",
            "project_id": "p",
            **{name: size for name, size in FLAVOR.items() if name != "swap"},
        },
    }


def test_the_way_back_from_nothing():
    spec = objects.RequestSpec()
    assert spec.to_legacy_filter_properties_dict() == {}
    assert spec.to_legacy_request_spec_dict() == {
        "num_instances": 1,
        "image": {},
        "instance_type": {},
        "instance_properties": {},
    }


def _components(filter_properties=None, group=None, **options):
    of_instance = ("u", {"id": "i"}, FLAVOR, None, None)
    of_request = (filter_properties or {}, group, "z")
    return objects.RequestSpec.from_components(CONTEXT, *of_instance, *of_request, **options)


def test_from_components():
    spec = _components({"scheduler_hints": {"a": "b"}, **GROUP})
    assert (spec.project_id, spec.user_id, spec.num_instances) == ("p-ctx", "u-ctx", 1)
    assert (spec.instance_uuid, spec.availability_zone, spec.vcpus) == ("u", "z", 2)
    assert spec.instance_group.uuid == "g"
    assert spec.get_scheduler_hint("a") == "b"
    assert (spec.image.id, spec.requested_resources) == ("i", [])
    assert not spec.is_set("security_groups")
    assert spec.is_set("request_level_params")


def test_from_components_takes_what_it_is_given():
    group = objects.InstanceGroup(name="mine")
    resources = [objects.RequestGroup(requester_id="port")]
    spec = _components(
        GROUP,
        group,
        project_id="p",
        user_id="v",
        security_groups=objects.SecurityGroupList(),
        port_resource_requests=resources,
    )
    assert (spec.project_id, spec.user_id, spec.instance_group.name) == ("p", "v", "mine")
    assert spec.is_set("security_groups")
    assert [g.requester_id for g in spec.requested_resources] == ["port"]


def test_from_components_needs_filter_properties():
    with pytest.raises(errors.InvalidRequest, match="filter_properties"):
        objects.RequestSpec.from_components(CONTEXT, "u", None, None, None, None, None, None, None)
