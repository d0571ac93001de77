"""Matching and allocating devices (reference page numa_pci, sections 7.4, 7.5, 10)."""

import json

import pytest

from scheduler import objects
from scheduler.pci import CURRENT, NEWTON, Cells, Pools, Request, allocate, requests_of, supports

BOTH = pytest.mark.parametrize("semantics", [CURRENT, NEWTON], ids=["current", "newton"])


def pools(*kinds):
    base = {"vendor_id": "8086", "product_id": "10ed", "numa_node": 0, "count": 1}
    return Pools.from_text(json.dumps([{**base, **kind} for kind in kinds]))


def want(count=1, policy="legacy", *specs):
    wire = objects.InstancePCIRequest(
        count=count, spec=list(specs or [{}]), numa_policy=policy, alias_name="a"
    )
    return Request.from_object(wire)


def left(pools):
    return [pool.count for pool in pools.pools]


@BOTH
@pytest.mark.parametrize(
    ("spec", "matches"),
    [
        ({"physical_network": None}, True),
        ({"vendor_id": None}, False),
        ({"numa_node": "0"}, False),
        ({"count": "1"}, False),
        ({"unheard_of": "1"}, False),
    ],
)
def test_specs(semantics, spec, matches):
    assert supports(pools({}), [want(1, "legacy", spec)], None, semantics) is matches


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


NODES = pools({"numa_node": None}, {"numa_node": 0}, {"numa_node": 1}, {"numa_node": 2, "count": 2})
SOCKETS = ((0, 0), (1, 0), (2, 1))


@pytest.mark.parametrize(
    ("policy", "count", "chosen", "remaining"),
    [
        ("legacy", 2, {1}, [1, 2]),
        ("legacy", 3, {1}, None),
        ("required", 1, {1}, [1, 1, 2]),
        ("required", 2, {1}, None),
        ("preferred", 3, {1}, [2]),
        ("preferred", 6, {1}, None),
        ("socket", 2, {1}, [1, 2]),
        ("socket", 3, {1}, None),
        ("socket", 2, {2}, [1, 1, 1]),
        ("required", 5, set(), []),
    ],
)
def test_affinity_today(policy, count, chosen, remaining):
    cells = Cells(frozenset(chosen), SOCKETS)
    allocation = allocate(NODES, [want(count, policy)], cells, CURRENT)
    assert allocation.complete is (remaining is not None)
    assert left(allocation.pools) == (left(NODES) if remaining is None else remaining)


def test_a_socket_that_is_not_known():
    cells = Cells(frozenset({0}), ((0, 0), (1, None)))
    assert not supports(NODES, [want(2, "socket")], cells, CURRENT)
    # The cell's own devices need no socket.
    assert supports(NODES, [want(1, "socket")], cells, CURRENT)


@pytest.mark.parametrize(("semantics", "remaining"), [(CURRENT, [1]), (NEWTON, [])])
def test_requests_behind_a_failed_one(semantics, remaining):
    allocation = allocate(
        pools({}), [want(1, "legacy", {"vendor_id": "x"}), want()], None, semantics
    )
    assert left(allocation.pools) == remaining
    assert not allocation.complete


@pytest.mark.parametrize(("semantics", "complete"), [(CURRENT, False), (NEWTON, True)])
def test_no_device_wanted_of_no_pool(semantics, complete):
    assert supports(Pools(), [want(0)], None, semantics) is complete
    assert supports(pools({}), [want(0)], None, semantics)
    assert supports(Pools(), [], None, semantics)


def test_requests_of_an_instance():
    assert requests_of(None) == ()
    wire = objects.InstancePCIRequests.from_dict(
        [{"count": 2, "spec": [{"vendor_id": "8086"}], "alias_name": "a"}]
    )
    assert requests_of(wire) == (Request(2, ((("vendor_id", "8086"),),), "legacy", "a"),)
