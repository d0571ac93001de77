"""(what the host reports, extra specs) -> satisfied, missing, refused, or not to be judged."""

from __future__ import annotations

import json

import pytest

from scheduler import errors
from scheduler.filters import extra_specs_ops
from scheduler.filters.compute_capabilities_filter import ComputeCapabilitiesFilter
from tests.builders import a_conf, a_fleet, a_request, candidates
from tests.unit.filters.judging import judge

MISSING, REFUSED = "capabilities.missing", "capabilities.refused"

CPU = {
    "vendor": "Intel",
    "features": ["aes", "vmx"],
    "topology": {"cores": 4},
    "flag": False,
    "nothing": None,
    "maxphysaddr": {"bits": 46},
}
STATS = {"gpu": "yes", "zero": 0, "count": "12", "nested": '{"a": {"b": "3"}}', "null": None}

ROWS = [
    # numbers of the host, scoped and not
    ("capabilities:free_ram_mb", ">= 4096", ""),
    ("capabilities:free_ram_mb", ">= 999999", REFUSED),
    ("free_ram_mb", ">= 999999", REFUSED),
    ("free_ram_mb", "4096", ""),
    ("free_ram_mb", "4096.0", REFUSED),
    ("ram_allocation_ratio", "1.5", ""),
    ("capabilities:num_io_ops", "0", ""),
    ("capabilities:vcpus_total", "= 4", ""),
    ("capabilities:free_ram_mb:more", "4096", MISSING),
    # names and other values
    ("capabilities:host", "h1", ""),
    ("capabilities:nodename", "n1", ""),
    ("hypervisor_hostname", "n1", ""),
    ("capabilities:hypervisor_type", "QEMU", ""),
    ("capabilities:hypervisor_type", "qemu", REFUSED),
    ("capabilities:host_ip", "x", MISSING),
    ("host_ip", "x", MISSING),
    # statistics
    ("capabilities:gpu", "yes", ""),
    ("gpu", "s== yes", ""),
    ("gpu", "no", REFUSED),
    ("capabilities:stats:gpu", "yes", ""),
    ("capabilities:zero", "0", ""),
    ("capabilities:count", "= 10", ""),
    ("capabilities:nested:a:b", "3", ""),
    ("capabilities:nested:a", "{'b': '3'}", ""),
    ("capabilities:null", "x", MISSING),
    # documents
    ("capabilities:cpu_info:vendor", "Intel", ""),
    ("capabilities:cpu_info:vendor", "AMD", REFUSED),
    ("capabilities:cpu_info:topology:cores", ">= 4", ""),
    ("capabilities:cpu_info:features", "<in> ae", ""),
    ("capabilities:cpu_info:features", "<all-in> aes avx", REFUSED),
    ("capabilities:cpu_info:features:aes", "x", MISSING),
    ("capabilities:cpu_info:flag", "False", ""),
    ("capabilities:cpu_info:nothing", "None", MISSING),
    ("capabilities:cpu_info:nosuch", "x", MISSING),
    ("hw:maxphysaddr_bits", "46", ""),
    ("hw:maxphysaddr_bits", "47", REFUSED),
    # neither
    ("nosuch", "x", ""),
    ("capabilities:nosuch", "x", MISSING),
    ("capabilities:", "x", MISSING),
    ("capabilities", "x", ""),
    ("limits", "{}", ""),
    ("capabilities:service:disabled", "False", MISSING),
    ("updated", "x", MISSING),
    # scopes of others
    ("Capabilities:free_ram_mb", ">= 999999", ""),
    ("hw:cpu_policy", "dedicated", ""),
    ("aggregate_instance_extra_specs:free_ram_mb", ">= 999999", ""),
]


HOST = {
    "cpu_info": json.dumps(CPU),
    "stats": json.dumps(STATS),
    "hypervisor_type": "QEMU",
    "host_ip": None,
}


def found(host, **specs):
    return judge(ComputeCapabilitiesFilter, host, {"flavor": {"extra_specs": specs}})


@pytest.mark.parametrize(("key", "requirement", "reason"), ROWS)
def test_one_extra_spec(key, requirement, reason):
    assert found(HOST, **{key: requirement}) == reason


@pytest.mark.parametrize("cpu_info", [None, "", "not json", "[]", "5", json.dumps(json.dumps(CPU))])
def test_a_processor_document_that_is_none_leads_nowhere(cpu_info):
    assert found({"cpu_info": cpu_info}, **{"capabilities:cpu_info:vendor": "Intel"}) == MISSING


def test_an_attribute_without_value_gives_way_to_a_statistic():
    host = {"host_ip": None, "stats": {"host_ip": "192.0.2.1"}}

    assert found(host, host_ip="192.0.2.1") == ""


@pytest.mark.parametrize("specs", [{}, {"gpu": "yes", "capabilities:free_ram_mb": ">= 1"}])
def test_all_extra_specs_must_hold(specs):
    assert found(HOST, **specs) == ""
    assert found(HOST, **specs, **{"capabilities:gpu": "no"}) == REFUSED


def test_hosts_are_judged_one_by_one():
    table = a_fleet(
        {"stats": {"tier": "gold"}, "free_ram_mb": 1000},
        {"stats": {"tier": "iron"}, "free_ram_mb": 1000},
        {"stats": {}, "free_ram_mb": 1000},
        {"stats": {"tier": "gold"}, "free_ram_mb": 10},
    )
    specs = {"tier": "gold", "capabilities:tier": "<or> gold <or> iron", "free_ram_mb": ">= 100"}
    request = a_request(flavor={"extra_specs": specs})

    conditions = ComputeCapabilitiesFilter(a_conf()).conditions(candidates(table), request)

    assert [(reason.code.partition(".")[2], mask.tolist()) for reason, mask in conditions] == [
        ("missing", [True, True, True, True]),
        ("refused", [True, False, True, True]),
        ("missing", [True, True, False, True]),
        ("refused", [True, True, True, True]),
        ("missing", [True, True, True, True]),
        ("refused", [True, True, True, False]),
    ]


@pytest.mark.parametrize(
    ("key", "requirement"),
    [
        ("capabilities:free_ram_mb", ">= abc"),
        ("capabilities:gpu", "= 5"),
        ("free_ram_mb", "<or>"),
        ("hw:maxphysaddr_bits", "many"),
    ],
)
def test_what_cannot_be_compared_is_the_requests_fault(key, requirement):
    with pytest.raises(errors.InvalidRequest) as caught:
        found(HOST, **{key: requirement})

    assert caught.value.kwargs["field"] == f"flavor.extra_specs.{key}"


def test_what_no_host_reports_is_not_compared():
    specs = {"capabilities:nosuch": ">= abc", "capabilities:free_ram_mb": ">= abc"}

    assert found(HOST, **specs) == MISSING


# --- requirements ------------------------------------------------------------------------------

REQUIREMENTS = [
    # plain equality
    ("gold", "gold", True),
    ("Gold", "gold", False),
    ("", "", True),
    ("x", "", False),
    (" ", " ", True),
    ("", " ", False),
    ("> 5", "> 5", True),
    ("10", "> 5", False),
    ("10", "< 20", False),
    ("5", ">=5", False),
    ("x", "<OR> x", False),
    (None, "x", False),
    # numbers
    ("6", "= 5", True),
    ("5", "= 5", True),
    ("4", "= 5", False),
    ("5.0", "== 5", True),
    ("5", "!= 5", False),
    ("5", "!= 6", True),
    ("-1", ">= 0", False),
    ("0", ">= 0", True),
    ("0", "<= -1", False),
    ("1e3", "== 1000", True),
    ("inf", ">= 99999", True),
    ("nan", "== nan", False),
    ("5", ">= 3 9", True),
    ("5", ">=", False),
    (None, "!= 5", False),
    # text
    ("10", "s< 9", True),
    ("b", "s>= b", True),
    ("b", "s> b", False),
    ("a", "s<= b", True),
    ("x", "s== x", True),
    ("True", "s== true", False),
    ("x", "s!= y", True),
    (None, "s!= x", False),
    ("x", "s==", False),
    # parts of text
    ("abcd", "<in> bc zz", True),
    ("abcd", "<in> ac", False),
    ("abcd", "<in>", False),
    ("['aes', 'vmx']", "<in> ae", True),
    ("['aes', 'vmx']", "<all-in> aes vmx", True),
    ("['aes', 'vmx']", "<all-in> aes avx", False),
    ("['aes', 'vmx']", "<all-in>", False),
    # alternatives
    ("a", "<or> a", True),
    ("b", "<or> a <or> b", True),
    ("b", "<or> a xx b", True),
    ("b", "<or> a b", False),
    ("c", "<or> a b c", True),
    ("b", "<or> a <or>", False),
    ("a", "<or> a <or>", True),
    ("1", "<or> 1.0", False),
    (None, "<or>", False),
]


@pytest.mark.parametrize(("value", "requirement", "satisfied"), REQUIREMENTS)
def test_a_requirement_is_satisfied_or_not(value, requirement, satisfied):
    assert extra_specs_ops.match(value, requirement) is satisfied


@pytest.mark.parametrize(
    ("value", "requirement"),
    [("abc", "= 5"), ("5", ">= abc"), ("", "== 0"), ("0x5", "== 5"), ("x", "<or>")],
)
def test_what_cannot_be_compared_is_an_error(value, requirement):
    with pytest.raises(ValueError, match=r"\S"):
        extra_specs_ops.match(value, requirement)
