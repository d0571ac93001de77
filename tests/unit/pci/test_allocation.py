"""Matching devices (numa_pci page, sections 7.4 and 10); worked examples show allocating."""

import json

import pytest

from scheduler import objects
from scheduler.pci import CURRENT, NEWTON, Pools, Request, allocate, supports


def pools(*kinds):
    base = {"vendor_id": "8086", "product_id": "10ed", "numa_node": 0, "count": 1}
    return Pools.from_text(json.dumps([{**base, **kind} for kind in kinds]))


def want(count=1, policy="legacy", *specs):
    wire = objects.InstancePCIRequest(
        count=count, spec=list(specs or [{}]), numa_policy=policy, alias_name="a"
    )
    return Request.from_object(wire)


@pytest.mark.parametrize(
    ("kind", "spec", "current", "newton"),
    [
        ({"vendor_id": "10de"}, {"vendor_id": "10DE"}, True, False),
        ({"dev_type": "vdpa"}, {}, False, True),
        ({"dev_type": "vdpa"}, {"dev_type": "vdpa"}, True, True),
        ({"remote_managed": "true"}, {}, False, True),
        ({"remote_managed": "true"}, {"remote_managed": "True"}, True, False),
        ({"live_migratable": "true"}, {"live_migratable": "true"}, True, True),
        ({"live_migratable": "false"}, {"live_migratable": "true"}, False, False),
        ({}, {"resource_class": "CUSTOM_A", "traits": "CUSTOM_B"}, True, False),
    ],
)
def test_special_keys(kind, spec, current, newton):
    assert supports(pools(kind), [want(1, "legacy", spec)], None, CURRENT) is current
    assert supports(pools(kind), [want(1, "legacy", spec)], None, NEWTON) is newton


@pytest.mark.parametrize(
    ("providers", "left"),
    [
        pytest.param((), [("a", 1), ("b", 1)], id="any"),
        pytest.param(("b",), [("a", 2)], id="the one of the claim"),
        pytest.param(("a", "b"), [("a", 1)], id="one of each"),
        pytest.param(("b", "b"), None, id="too few there"),
        pytest.param(("c",), None, id="not of this host"),
    ],
)
def test_devices_of_providers_in_placement(providers, left):
    several = [objects.PciDevicePool(vendor_id="1", product_id="2", count=n) for n in (2, 1)]
    for pool, name in zip(several, "ab", strict=True):
        pool.tags = {"rp_uuid": name}
    spec = [{"vendor_id": "1", "rp_uuids": "another"}]
    wire = objects.InstancePCIRequest(count=len(providers) or 1, spec=spec)
    request = Request.from_object(wire, providers)
    found = allocate(Pools.from_object(several), (request,), None, CURRENT)
    assert found.complete is (left is not None)
    rest = [(each.values["rp_uuid"], each.count) for each in found.pools.pools]
    assert left is None or rest == left
