"""Whole requests for NUMA cells and PCI devices: several servers, failures, forced hosts."""

import json

import pytest

from scheduler import errors
from scheduler.engine import Policy
from scheduler.engine.evaluation import FilterChain
from scheduler.filters.registry import load_filters
from scheduler.hosts.host_state import Fitting
from scheduler.semantics import CHOICES
from scheduler.weights.registry import load_weighers
from tests.builders import a_conf, a_fleet, a_request
from tests.unit.engine.deciding import Decider
from tests.unit.numa.builders import cell, devices, guest, host, want
from tests.world import random_fleets

PINNED = guest(want(range(2), "dedicated"))
UUIDS = [f"u{number}" for number in range(9)]
GPUS = json.dumps([{"vendor_id": "10de", "product_id": "1db4", "numa_node": 1, "count": 2}])


def a_policy(semantics="current"):
    conf = a_conf(
        enabled_filters=["NUMATopologyFilter", "PciPassthroughFilter"],
        weight_classes=["nova.scheduler.weights.ram.RAMWeigher"],
        scheduler__semantics=semantics,
    )
    return Policy(
        chain=FilterChain(load_filters(conf)),
        weighers=load_weighers(conf),
        semantics=CHOICES[semantics],
        fitting=Fitting.from_conf(conf),
    )


def a_decision(table, semantics="current"):
    return Decider(table, a_policy(semantics))


def asking(topology, gpus=0, **fields):
    request = a_request(numa_topology=topology.to_object() if topology else None, **fields)
    if gpus:
        request.pci_requests = devices(gpus, "10de")
    return request


def pinned(table, name):
    topology = table.value(table.rows[name, name.replace("h", "n")], "numa_topology")
    return [set(each.pinned) for each in topology.cells]


@pytest.mark.parametrize(
    "request_", [asking(PINNED), asking(None, gpus=1), asking(PINNED, gpus=1)], ids=str
)
def test_a_request_that_fails_leaves_no_trace(request_):
    table = a_fleet(*[{"numa_topology": random_fleets.TOPOLOGY, "pci_stats": GPUS}] * 2, {})
    before = random_fleets.snapshot(table)
    decision = a_decision(table)

    with pytest.raises(errors.NoValidHost):
        decision.place(request_.copy(), UUIDS, 9, 0)

    assert random_fleets.snapshot(table) == before
    assert decision.place(request_, UUIDS[:1], 1, 0).hosts, "the first ones had their places"


@pytest.mark.parametrize("count", [1, 2])
def test_what_a_server_was_given_before_does_not_stand_against_it(count):
    table = a_fleet({"numa_topology": host(cell(cpus=range(2 * count)))})
    decision = a_decision(table)
    for _ in range(2):
        decision.place(asking(PINNED), UUIDS[:count], count, 0)
        assert pinned(table, "h1") == [set(range(2 * count))]
    with pytest.raises(errors.NoValidHost):
        decision.place(asking(PINNED), UUIDS[2:3], 1, 0)
    assert pinned(table, "h1") == [set(range(2 * count))]


@pytest.mark.parametrize(("semantics", "forgotten"), [("newton", True), ("current", False)])
def test_wishes_that_no_filter_asked_about(semantics, forgotten):
    """Forced to a host without cells, the second server of Newton wishes for nothing any more."""
    request = asking(PINNED, force_hosts=["h1"])

    placement = a_decision(a_fleet({}), semantics).place(request, UUIDS[:2], 2, 0)

    assert [state.host for state in placement.hosts] == ["h1", "h1"]
    assert (request.numa_topology is None) is forgotten
