"""(pools of the host, devices asked for) -> there or not."""

from __future__ import annotations

import json

import pytest

from scheduler import objects
from scheduler.filters.pci_passthrough_filter import PciPassthroughFilter
from tests.builders import a_request
from tests.unit.filters.judging import judge, rows

UNREPORTED, LACKING = "pci.unreported", "pci.lacking"
NIC = {"vendor_id": "8086", "product_id": "10ed", "numa_node": 0, "count": 2}
GPU = {"vendor_id": "10DE", "product_id": "1db4", "count": 1, "dev_type": "type-PF"}


def asking(*counts_and_specs):
    requests = [objects.InstancePCIRequest(count=n, spec=specs) for n, *specs in counts_and_specs]
    return a_request(pci_requests=objects.InstancePCIRequests(requests=requests))


@pytest.mark.parametrize(
    ("pools", "request_", "reason"),
    rows(
        ("nothing wanted, never reported", None, a_request(), ""),
        ("null wanted", None, a_request(pci_requests=None), ""),
        ("no devices wanted, never reported", None, asking(), ""),
        ("never reported", None, asking((1, {"vendor_id": "8086"})), UNREPORTED),
        ("no pools", [], asking((1, {"vendor_id": "8086"})), LACKING),
        ("all of a pool", [NIC], asking((2, {"vendor_id": "8086"})), ""),
        ("one too many", [NIC], asking((3, {"vendor_id": "8086"})), LACKING),
        ("requests see what those before them took", [NIC],
         asking((1, {"vendor_id": "8086"}), (2, {"product_id": "10ed"})), LACKING),
        ("one of two alternatives", [NIC], asking((1, {"vendor_id": "0"}, {})), ""),
        ("no spec matches nothing", [NIC], asking((1,)), LACKING),
        ("functions are kept", [GPU], asking((1, {"vendor_id": "10DE"})), LACKING),
        ("function by name", [GPU], asking((1, {"dev_type": "type-PF"})), ""),
    ),
)  # fmt: skip
def test_pools_decide(pools, request_, reason):
    host = {"pci_stats": None if pools is None else json.dumps(pools)}

    assert judge(PciPassthroughFilter, host, request_) == reason


@pytest.mark.parametrize(
    ("spec", "count", "newton", "current"),
    [
        ({"dev_type": "type-PF", "vendor_id": "10de"}, 1, LACKING, ""),  # case
        ({"vendor_id": "0"}, 0, "", LACKING),  # none of nothing
    ],
)
def test_what_the_semantics_decide(spec, count, newton, current):
    host, request = {"pci_stats": json.dumps([GPU])}, asking((count, spec))

    assert judge(PciPassthroughFilter, host, request, semantics="newton") == newton
    assert judge(PciPassthroughFilter, host, request) == current
