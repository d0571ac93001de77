"""Handing out devices of PCI pools."""

from __future__ import annotations

import types
from typing import Any

import pytest

from conductor_stub.compute import pci
from conductor_stub.compute.profiles import PciPool
from scheduler import errors

GPU = PciPool("10de", "1db4", 2, numa_node=0, tags={"dev_type": "type-PCI"})
VF = PciPool("8086", "10ed", 3, tags={"dev_type": "type-VF", "physical_network": "net1"})
PF = PciPool("8086", "10fb", 1, tags={"dev_type": "type-PF", "physical_network": "net1"})
BARE = PciPool("8086", "10ed", 1)


def guest(*requests: tuple[int, list[dict[str, Any]]]) -> Any:
    made = [types.SimpleNamespace(count=c, spec=s, alias_name="a") for c, s in requests]
    return types.SimpleNamespace(pci_requests=types.SimpleNamespace(requests=made))


PLAIN = types.SimpleNamespace(pci_requests=None)


@pytest.mark.parametrize(
    ("pools", "guests", "left"),
    [
        ([GPU], [PLAIN], {"1db4": 2}),
        ([GPU], [guest()], {"1db4": 2}),
        ([GPU], [guest((1, [{"vendor_id": "10de"}]))], {"1db4": 1}),
        ([GPU], [guest((2, [{"vendor_id": "10de"}]))], {}),
        ([GPU], [guest((1, [{"vendor_id": "10de"}])), guest((1, [{}]))], {}),
        ([GPU, VF], [guest((1, [{"vendor_id": "ffff"}, {"physical_network": "net1"}]))], None),
        ([VF, PF], [guest((1, [{"physical_network": "net1"}]))], {"10ed": 2, "10fb": 1}),
        ([VF, PF], [guest((1, [{"dev_type": "type-PF"}]))], {"10ed": 3}),
        ([VF], [guest((0, [{"vendor_id": "ffff"}]))], {"10ed": 3}),
        ([VF, BARE], [guest((2, [{"product_id": "10ed"}]))], {"10ed": 2}),
        ([VF, BARE], [guest((1, [{"physical_network": None}]))], {"10ed": 3}),
    ],
)
def test_devices_are_taken_from_the_first_pools_that_match(pools, guests, left):
    found = {pool.product_id: pool.count for pool in pci.free_pools(pools, guests)}
    assert found == ({"1db4": 2, "10ed": 2} if left is None else left)


@pytest.mark.parametrize(
    ("pools", "guests"),
    [
        ([], [guest((1, [{}]))]),
        ([GPU], [guest((3, [{"vendor_id": "10de"}]))]),
        ([GPU], [guest((1, []))]),
        ([GPU], [guest((1, [{"numa_node": "0"}]))]),
        ([PF], [guest((1, [{"physical_network": "net1"}]))]),
        ([GPU], [guest((2, [{}])), guest((1, [{}]))]),
    ],
)
def test_too_few_devices_are_a_refusal(pools, guests):
    *present, newcomer = guests
    with pytest.raises(errors.ComputeResourcesUnavailable, match="PCI devices"):
        pci.check(pools, present, newcomer)


def test_enough_devices_are_none():
    pci.check([GPU], [guest((1, [{"vendor_id": "10de"}]))], guest((1, [{}])))


def test_a_report_does_not_fail_when_a_profile_shrank():
    assert pci.free_pools([GPU], [guest((3, [{}])), guest((1, [{}]))]) == []


def test_the_pools_given_are_left_as_they_are():
    pci.free_pools([GPU], [guest((2, [{}]))])
    assert GPU.count == 2
