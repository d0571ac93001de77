"""(pools of the host, devices asked for) -> there or not."""

from __future__ import annotations

import json

import pytest

from scheduler import objects
from scheduler.filters.pci_passthrough_filter import PciPassthroughFilter
from tests.builders import a_conf, a_host, a_request, verdict

UNREPORTED, LACKING = ["pci.unreported"], ["pci.lacking"]
NIC = {"vendor_id": "8086", "product_id": "10ed", "numa_node": 0, "count": 2}
GPU = {"vendor_id": "10DE", "product_id": "1db4", "count": 1, "dev_type": "type-PF"}


def asking(*counts_and_specs):
    requests = [objects.InstancePCIRequest(count=n, spec=specs) for n, *specs in counts_and_specs]
    return a_request(pci_requests=objects.InstancePCIRequests(requests=requests))


@pytest.mark.parametrize(
    ("pools", "request_", "reasons"),
    [
        pytest.param(None, a_request(), [], id="nothing wanted, never reported"),
        pytest.param(None, a_request(pci_requests=None), [], id="null wanted"),
        pytest.param(None, asking(), [], id="no devices wanted, never reported"),
        pytest.param(None, asking((1, {"vendor_id": "8086"})), UNREPORTED, id="never reported"),
        pytest.param([], asking((1, {"vendor_id": "8086"})), LACKING, id="no pools"),
        pytest.param([NIC], asking((2, {"vendor_id": "8086"})), [], id="all of a pool"),
        pytest.param([NIC], asking((3, {"vendor_id": "8086"})), LACKING, id="one too many"),
        pytest.param(
            [NIC],
            asking((1, {"vendor_id": "8086"}), (2, {"product_id": "10ed"})),
            LACKING,
            id="requests see what those before them took",
        ),
        pytest.param([NIC], asking((1, {"vendor_id": "0"}, {})), [], id="one of two alternatives"),
        pytest.param([NIC], asking((1,)), LACKING, id="no spec matches nothing"),
        pytest.param([GPU], asking((1, {"vendor_id": "10DE"})), LACKING, id="functions are kept"),
        pytest.param([GPU], asking((1, {"dev_type": "type-PF"})), [], id="function by name"),
    ],
)
def test_pools_decide(pools, request_, reasons):
    state = a_host(pci_stats=None if pools is None else json.dumps(pools))

    assert verdict(PciPassthroughFilter(a_conf()), state, request_) == reasons


@pytest.mark.parametrize(
    ("semantics", "request_", "reasons"),
    [
        ("newton", asking((1, {"dev_type": "type-PF", "vendor_id": "10de"})), LACKING),
        ("current", asking((1, {"dev_type": "type-PF", "vendor_id": "10de"})), []),
        ("newton", asking((0, {"vendor_id": "0"})), []),
        ("current", asking((0, {"vendor_id": "0"})), LACKING),
    ],
    ids=["case, newton", "case", "none of nothing, newton", "none of nothing"],
)
def test_what_the_semantics_decide(semantics, request_, reasons):
    conf = a_conf()
    conf.set_override("semantics", semantics, group="scheduler")

    found = verdict(PciPassthroughFilter(conf), a_host(pci_stats=json.dumps([GPU])), request_)

    assert found == reasons


def test_it_limits_nothing():
    request = asking((1, {"vendor_id": "8086"}))

    assert PciPassthroughFilter(a_conf()).limits(a_host(pci_stats="[]"), request) == {}
