"""(what the host reports, extra specs) -> satisfied, missing, refused, or not to be judged."""

from __future__ import annotations

import json

import pytest

from scheduler import errors
from scheduler.filters.compute_capabilities_filter import ComputeCapabilitiesFilter
from tests.builders import a_conf, a_fleet, a_host, a_request, candidates, verdict

MISSING, REFUSED = ["capabilities.missing"], ["capabilities.refused"]

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
    ("capabilities:free_ram_mb", ">= 4096", []),
    ("capabilities:free_ram_mb", ">= 999999", REFUSED),
    ("free_ram_mb", ">= 999999", REFUSED),
    ("free_ram_mb", "4096", []),
    ("free_ram_mb", "4096.0", REFUSED),
    ("ram_allocation_ratio", "1.5", []),
    ("capabilities:num_io_ops", "0", []),
    ("capabilities:vcpus_total", "= 4", []),
    ("capabilities:free_ram_mb:more", "4096", MISSING),
    # names and other values
    ("capabilities:host", "h1", []),
    ("capabilities:nodename", "n1", []),
    ("hypervisor_hostname", "n1", []),
    ("capabilities:hypervisor_type", "QEMU", []),
    ("capabilities:hypervisor_type", "qemu", REFUSED),
    ("capabilities:host_ip", "x", MISSING),
    ("host_ip", "x", MISSING),
    # statistics
    ("capabilities:gpu", "yes", []),
    ("gpu", "s== yes", []),
    ("gpu", "no", REFUSED),
    ("capabilities:stats:gpu", "yes", []),
    ("capabilities:zero", "0", []),
    ("capabilities:count", "= 10", []),
    ("capabilities:nested:a:b", "3", []),
    ("capabilities:nested:a", "{'b': '3'}", []),
    ("capabilities:null", "x", MISSING),
    # documents
    ("capabilities:cpu_info:vendor", "Intel", []),
    ("capabilities:cpu_info:vendor", "AMD", REFUSED),
    ("capabilities:cpu_info:topology:cores", ">= 4", []),
    ("capabilities:cpu_info:features", "<in> ae", []),
    ("capabilities:cpu_info:features", "<all-in> aes avx", REFUSED),
    ("capabilities:cpu_info:features:aes", "x", MISSING),
    ("capabilities:cpu_info:flag", "False", []),
    ("capabilities:cpu_info:nothing", "None", MISSING),
    ("capabilities:cpu_info:nosuch", "x", MISSING),
    ("hw:maxphysaddr_bits", "46", []),
    ("hw:maxphysaddr_bits", "47", REFUSED),
    # neither
    ("nosuch", "x", []),
    ("capabilities:nosuch", "x", MISSING),
    ("capabilities:", "x", MISSING),
    ("capabilities", "x", []),
    ("limits", "{}", []),
    ("capabilities:service:disabled", "False", MISSING),
    ("updated", "x", MISSING),
    # scopes of others
    ("Capabilities:free_ram_mb", ">= 999999", []),
    ("hw:cpu_policy", "dedicated", []),
    ("aggregate_instance_extra_specs:free_ram_mb", ">= 999999", []),
]


@pytest.fixture
def host():
    return a_host(
        cpu_info=json.dumps(CPU), stats=json.dumps(STATS), hypervisor_type="QEMU", host_ip=None
    )


@pytest.mark.parametrize(("key", "requirement", "reasons"), ROWS)
def test_one_extra_spec(host, key, requirement, reasons):
    request = a_request(flavor={"extra_specs": {key: requirement}})

    assert verdict(ComputeCapabilitiesFilter(a_conf()), host, request) == reasons


@pytest.mark.parametrize("cpu_info", [None, "", "not json", "[]", "5", json.dumps(json.dumps(CPU))])
def test_a_processor_document_that_is_none_leads_nowhere(cpu_info):
    request = a_request(flavor={"extra_specs": {"capabilities:cpu_info:vendor": "Intel"}})

    found = verdict(ComputeCapabilitiesFilter(a_conf()), a_host(cpu_info=cpu_info), request)

    assert found == MISSING


def test_an_attribute_without_value_gives_way_to_a_statistic():
    host = a_host(host_ip=None, stats={"host_ip": "192.0.2.1"})
    request = a_request(flavor={"extra_specs": {"host_ip": "192.0.2.1"}})

    assert verdict(ComputeCapabilitiesFilter(a_conf()), host, request) == []


@pytest.mark.parametrize("specs", [{}, {"gpu": "yes", "capabilities:free_ram_mb": ">= 1"}])
def test_all_extra_specs_must_hold(host, specs):
    capabilities = ComputeCapabilitiesFilter(a_conf())

    assert verdict(capabilities, host, a_request(flavor={"extra_specs": specs})) == []
    specs = {**specs, "capabilities:gpu": "no"}
    assert verdict(capabilities, host, a_request(flavor={"extra_specs": specs})) == REFUSED


def test_hosts_are_judged_one_by_one():
    table = a_fleet(
        {"stats": {"tier": "gold"}, "free_ram_mb": 1000},
        {"stats": {"tier": "iron"}, "free_ram_mb": 1000},
        {"stats": {}, "free_ram_mb": 1000},
        {"stats": {"tier": "gold"}, "free_ram_mb": 10},
    )
    specs = {"tier": "gold", "capabilities:tier": "<or> gold <or> iron", "free_ram_mb": ">= 100"}
    request = a_request(flavor={"extra_specs": specs})

    found = ComputeCapabilitiesFilter(a_conf()).conditions(candidates(table), request)

    assert [(reason.code.partition(".")[2], mask.tolist()) for reason, mask in found] == [
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
def test_what_cannot_be_compared_is_the_requests_fault(host, key, requirement):
    request = a_request(flavor={"extra_specs": {key: requirement}})

    with pytest.raises(errors.InvalidRequest) as caught:
        verdict(ComputeCapabilitiesFilter(a_conf()), host, request)

    assert caught.value.kwargs["field"] == f"flavor.extra_specs.{key}"


def test_what_no_host_reports_is_not_compared(host):
    specs = {"capabilities:nosuch": ">= abc", "capabilities:free_ram_mb": ">= abc"}
    request = a_request(flavor={"extra_specs": specs})

    assert verdict(ComputeCapabilitiesFilter(a_conf()), host, request) == MISSING
