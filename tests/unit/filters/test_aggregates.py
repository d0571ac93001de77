"""(metadata of the host's aggregates, request) -> admitted or not."""

from __future__ import annotations

import logging

import pytest

from scheduler import errors, objects
from scheduler.filters.aggregate_image_properties_isolation import (
    AggregateImagePropertiesIsolation,
)
from scheduler.filters.aggregate_instance_extra_specs import AggregateInstanceExtraSpecsFilter
from scheduler.filters.aggregate_multitenancy_isolation import AggregateMultiTenancyIsolation
from scheduler.filters.availability_zone_filter import AvailabilityZoneFilter
from scheduler.filters.type_filter import AggregateTypeAffinityFilter, TypeAffinityFilter
from scheduler.hosts.instances import TrackedInstance
from tests.builders import a_conf, a_host, a_request, verdict
from tests.unit.filters.judging import judge, rows

# --- AvailabilityZoneFilter --------------------------------------------------------------------

ELSEWHERE = "availability_zone.other"


@pytest.mark.parametrize(
    ("zones", "asked", "reason"),
    rows(
        ("no zone asked for", [], None, ""),
        ("empty zone asked for", ["z1"], "", ""),
        ("default zone, host in none", [], "nova", ""),
        ("the default zone has a case", [], "Nova", ELSEWHERE),
        ("no longer in the default", ["z1"], "nova", ELSEWHERE),
        ("same", ["z1"], "z1", ""),
        ("zones have a case", ["z1"], "Z1", ELSEWHERE),
        ("one of several", ["z1, z2"], "z2", ""),
        ("not a list", ["z1, z2"], "z1, z2", ELSEWHERE),
        ("second one", ["z1", "z2"], "z2", ""),
        ("the zone without a name", [""], "nova", ELSEWHERE),
        ("host in no zone", [], "z1", ELSEWHERE),
    ),
)
def test_zones(zones, asked, reason):
    host = {"aggregates": [{"availability_zone": zone} for zone in zones] or [{"ssd": "yes"}]}

    assert judge(AvailabilityZoneFilter, host, {"availability_zone": asked}) == reason
    if not zones:
        assert judge(AvailabilityZoneFilter, {}, {"availability_zone": asked}) == reason


def test_the_default_zone_is_an_option():
    conf = a_conf()
    conf.set_override("default_availability_zone", "home")
    zones = AvailabilityZoneFilter(conf)

    assert verdict(zones, a_host(), a_request(availability_zone="home")) == []
    assert verdict(zones, a_host(), a_request(availability_zone="nova")) == [ELSEWHERE]


# --- AggregateMultiTenancyIsolation ------------------------------------------------------------

KEY, OTHER_PROJECT = "filter_tenant_id", "multitenancy.other"


@pytest.mark.parametrize(
    ("metadata", "current", "newton"),
    rows(
        ("no aggregate", [], "", ""),
        ("other metadata", [{"other": "p2"}], "", ""),
        ("this project", [{KEY: "p1"}], "", ""),
        ("one of several", [{KEY: "p2, p1"}], "", ""),
        ("the second aggregate's", [{KEY: "p2"}, {KEY: "p1"}], "", ""),
        ("another project", [{KEY: "p2"}], OTHER_PROJECT, OTHER_PROJECT),
        ("projects have a case", [{KEY: "P1"}], OTHER_PROJECT, OTHER_PROJECT),
        ("nobody", [{KEY: ""}], OTHER_PROJECT, OTHER_PROJECT),
        ("a key with more behind", [{"filter_tenant_id2": "p2"}], OTHER_PROJECT, ""),
        ("two keys", [{KEY: "p2", "filter_tenant_id3": "p1"}], "", OTHER_PROJECT),
    ),
)
def test_projects(metadata, current, newton):
    host, request = {"aggregates": metadata}, {"project_id": "p1"}

    assert judge(AggregateMultiTenancyIsolation, host, request) == current
    assert judge(AggregateMultiTenancyIsolation, host, request, semantics="newton") == newton


# --- AggregateInstanceExtraSpecsFilter ---------------------------------------------------------

MISSING, REFUSED = "aggregate_specs.missing", "aggregate_specs.refused"
SCOPE = "aggregate_instance_extra_specs"


@pytest.mark.parametrize(
    ("metadata", "extra_specs", "reason"),
    rows(
        ("nothing demanded", [], {}, ""),
        ("no aggregate", [], {"ssd": "true"}, MISSING),
        ("another scope", [], {"hw:x": "1"}, ""),
        ("unscoped", [{"ssd": "true"}], {"ssd": "true"}, ""),
        ("our scope", [{"ssd": "true"}], {f"{SCOPE}:ssd": "true"}, ""),
        ("our scope, refused", [{"ssd": "no"}], {f"{SCOPE}:ssd": "true"}, REFUSED),
        ("colons in the key", [{"a:b": "1"}], {f"{SCOPE}:a:b": "1"}, ""),
        ("and not its end alone", [{"b": "1"}], {f"{SCOPE}:a:b": "1"}, MISSING),
        ("scopes have a case", [], {f"{SCOPE.title()}:ssd": "x"}, ""),
        ("no key at all", [{"": "1"}], {f"{SCOPE}:": "1"}, ""),
        ("one of several", [{"ssd": "1, 2 ,3"}], {"ssd": "2"}, ""),
        ("any other value will do", [{"n": "3"}, {"n": "4"}], {"n": "!= 3"}, ""),
        ("on two aggregates", [{"a": "1"}, {"b": "2"}], {"a": "1", "b": "2"}, ""),
        ("all are demanded", [{"a": "1"}], {"a": "1", "b": "2"}, MISSING),
        ("operator", [{"n": "5"}], {"n": ">= 6"}, REFUSED),
        ("asked in turn", [{"n": "x"}], {"a": "1", "n": "= 5"}, MISSING),
    ),
)
def test_extra_specs(metadata, extra_specs, reason):
    request = {"flavor": {"extra_specs": extra_specs}}

    assert judge(AggregateInstanceExtraSpecsFilter, {"aggregates": metadata}, request) == reason


@pytest.mark.parametrize("requirement", ["= 5", "<or>"])
def test_an_extra_spec_that_cannot_be_compared_is_the_requests_fault(requirement):
    request = {"flavor": {"extra_specs": {"tier": requirement}}}

    with pytest.raises(errors.InvalidRequest, match=r"flavor\.extra_specs\.tier"):
        judge(AggregateInstanceExtraSpecsFilter, {"aggregates": [{"tier": "gold"}]}, request)


# --- AggregateImagePropertiesIsolation ---------------------------------------------------------

OTHER_IMAGE = "image_isolation.other"
LINUX, WINDOWS = {"os_type": "linux"}, {"os_type": "windows"}


@pytest.mark.parametrize(
    ("metadata", "image", "reason"),
    rows(
        ("no aggregate", [], LINUX, ""),
        ("no image", [LINUX], None, ""),
        ("image without the property", [LINUX], {}, ""),
        ("same", [LINUX], LINUX, ""),
        ("other", [LINUX], WINDOWS, OTHER_IMAGE),
        ("listed", [{"os_type": "windows, linux"}], LINUX, ""),
        ("united", [{"os_type": "x"}, LINUX], LINUX, ""),
        ("all keys count", [LINUX | {"hw_vm_mode": "xen"}], LINUX | {"hw_vm_mode": "hvm"},
         OTHER_IMAGE),
        ("True has a case", [{"hw_boot_menu": "true"}], {"hw_boot_menu": True}, OTHER_IMAGE),
        ("True", [{"hw_boot_menu": "True"}], {"hw_boot_menu": True}, ""),
        ("no is nothing", [{"hw_boot_menu": "x"}], {"hw_boot_menu": False}, ""),
        ("numbers", [{"hw_cpu_cores": "4"}], {"hw_cpu_cores": 4}, ""),
        ("no property", [{"availability_zone": "z"}], LINUX, ""),
        ("a property after none", [{"availability_zone": "z"} | LINUX], WINDOWS, OTHER_IMAGE),
    ),
)  # fmt: skip
def test_images(metadata, image, reason):
    host, request = {"aggregates": metadata}, {"image": image}

    assert judge(AggregateImagePropertiesIsolation, host, request) == reason


@pytest.mark.parametrize(
    ("namespace", "separator", "reason"),
    rows(
        ("none", None, ".", OTHER_IMAGE),
        ("empty", "", "_", OTHER_IMAGE),
        ("beginning of the property", "os", "_", OTHER_IMAGE),
        ("never a property", "os", ".", ""),
        ("other properties", "hw", "_", ""),
        ("no separator", "os_t", "", OTHER_IMAGE),
        ("no separator set", "os_t", None, OTHER_IMAGE),
    ),
)
def test_a_namespace_leaves_out_other_keys(namespace, separator, reason):
    options = {
        "aggregate_image_properties_isolation_namespace": namespace,
        "aggregate_image_properties_isolation_separator": separator,
    }
    others = {f"other_{number}": "x" for number in range(20)}  # keys come in any order
    host = {"aggregates": [{**others, "availability_zone": "z"} | LINUX]}

    found = judge(AggregateImagePropertiesIsolation, host, {"image": WINDOWS}, **options)

    assert found == reason


def test_a_key_that_is_no_property_is_logged_once(caplog):
    isolation = AggregateImagePropertiesIsolation(a_conf())
    host = a_host(aggregates=[{"availability_zone": "z"}])

    with caplog.at_level(logging.WARNING):
        for _again in range(2):
            verdict(isolation, host, a_request(image=LINUX))

    assert caplog.messages == [
        "An aggregate has a metadata key 'availability_zone' that is not present in the image "
        "metadata."
    ]


# --- TypeAffinityFilter and AggregateTypeAffinityFilter ----------------------------------------

NOT_NAMED = "aggregate_type.not_named"


@pytest.mark.parametrize(
    ("types", "reason"),
    [([], ""), ([1], ""), ([1, 1], ""), ([2], "type.other"), ([1, 2], "type.other"),
     ([None], "type.other")],
)  # fmt: skip
def test_flavors_on_the_host(types, reason):
    host = a_host()
    for number, instance_type_id in enumerate(types):
        instance = TrackedInstance(f"u{number}", "h1", "n1", instance_type_id=instance_type_id)
        host.table.put_instance("h1", instance.uuid, instance)

    assert judge(TypeAffinityFilter, host, {"flavor": {"id": 1}}) == reason


@pytest.mark.parametrize(
    ("named", "reason"),
    [([], ""), (["m1.tiny"], ""), (["m1.small, m1.tiny"], ""), (["m1.small", "m1.tiny"], ""),
     (["m1.small"], NOT_NAMED), (["M1.TINY"], NOT_NAMED), ([""], NOT_NAMED)],
)  # fmt: skip
def test_flavors_that_aggregates_name(named, reason):
    metadata = [{"instance_type": text} for text in named] or [{"other": "m1.small"}]

    assert judge(AggregateTypeAffinityFilter, {"aggregates": metadata}) == reason


def test_a_request_without_a_flavor_names_none():
    request = objects.RequestSpec(num_instances=1)
    named = {"aggregates": [{"instance_type": "m1.tiny"}]}

    assert judge(AggregateTypeAffinityFilter, named, request) == NOT_NAMED
    assert judge(AggregateTypeAffinityFilter, {}, request) == ""
