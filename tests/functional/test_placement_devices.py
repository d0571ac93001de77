"""Devices that a real Placement counts: which of its offers are claimed."""

import json

import pytest

from scheduler import errors, objects
from tests.functional.placement_fleet import MB, OWNED, a_name
from tests.functional.test_placement_claims import BOTH, a_worker, database, fleet

__all__ = ["database", "fleet"]

CARD = "CUSTOM_CARD"
REQUEST_ID = "00000000-0000-4000-8000-000000000077"


def pools(*providers):
    """The column of a host with one free card per provider."""
    several = [
        {"vendor_id": "8086", "product_id": "1520", "numa_node": None, "count": 1}
        | {"tags": {"dev_type": "type-PCI", "rp_uuid": each}}
        for each in providers
    ]
    found = [objects.PciDevicePool(**each) for each in several]
    return json.dumps(objects.PciDevicePoolList(objects=found).obj_to_primitive())


def a_card():
    request = objects.InstancePCIRequest(
        count=1, spec=[{"vendor_id": "8086"}], alias_name="card", request_id=REQUEST_ID
    )
    group = objects.RequestGroup(requester_id=f"{REQUEST_ID}-0", resources={CARD: 1})
    requests = objects.InstancePCIRequests(requests=[request])
    return {"pci_requests": requests, "requested_resources": [group]}


@pytest.mark.parametrize(
    ("enabled", "hosts"), [("PciPassthroughFilter", ["p2"]), ("NUMATopologyFilter", ["p1", "p2"])]
)
@pytest.mark.parametrize("free_ram_mb", [MB, 4 * MB], ids=["alternate", "best"])
def test_devices_are_compared_where_a_filter_does(fleet, enabled, hosts, free_ram_mb):
    card, of_nobody = a_name(), a_name()
    fleet.placement.call("PUT", f"/resource_classes/{CARD}")
    node = fleet.add("p1", report={"pci_stats": pools(of_nobody), "free_ram_mb": free_ram_mb})
    fleet.placement.add_node(a_name(), {CARD: 1}, OWNED, parent=node)
    node = fleet.add("p2", report={"pci_stats": pools(card)})
    fleet.placement.add_node(card, {CARD: 1}, OWNED, parent=node)
    worker = a_worker(fleet, policy={"enabled_filters": [enabled]})
    (row,) = worker.select("req-1", [a_name()], MB // 8, **a_card())
    assert sorted(each.service_host for each in row) == hosts


@BOTH
def test_only_offers_with_free_devices_are_claimed(fleet):
    cards = [a_name() for _each in range(3)]
    fleet.placement.call("PUT", f"/resource_classes/{CARD}")
    node = fleet.add("p1", report={"pci_stats": pools(*cards[:2])})  # the third is in use
    for card in cards:
        fleet.placement.add_node(card, {CARD: 1}, OWNED, parent=node)
    filters = {"enabled_filters": ["PciPassthroughFilter"]}
    worker = a_worker(fleet, policy=filters, state_fresh_seconds=1)
    names = [a_name(), a_name()]
    with pytest.raises(errors.NoValidHost):
        worker.select("req-1", [*names, a_name()], MB // 8, **a_card())
    assert fleet.used_mb() == {"p1": 0}
    assert worker.hosts("req-2", names, MB // 8, **a_card()) == ["p1", "p1"]
    taken = [set(fleet.placement.allocations(each)) - {node} for each in names]
    assert sorted(map(len, taken)) == [1, 1]
    assert set.union(*taken) == set(cards[:2])
