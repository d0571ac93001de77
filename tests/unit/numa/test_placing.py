"""Placing an instance: the order of effects, and what a failure leaves (sections 8.3, 10.3)."""

from __future__ import annotations

import pytest

from scheduler import errors, pci
from scheduler.numa import CURRENT, NEWTON, place
from tests.unit.numa.builders import cell, guest, host, want

POOLS = pci.Pools.from_text('[{"vendor_id": "1", "product_id": "2", "numa_node": 0, "count": 1}]')


def devices(count):
    return (pci.Request(count, ((("vendor_id", "1"),),)),)


@pytest.mark.parametrize(("semantics", "kept"), [(CURRENT, True), (NEWTON, False)])
def test_wishes_without_a_host_topology(semantics, kept):
    wish = guest(want())
    placement = place(None, wish, semantics=semantics)
    assert (placement.guest is wish) is kept
    assert placement.error is None
    assert (placement.host, placement.pools) == (None, None)


@pytest.mark.parametrize("semantics", [CURRENT, NEWTON])
def test_a_guest_that_does_not_fit_loses_its_wishes(semantics):
    before = host(cell())
    placement = place(before, guest(want(range(5))), None, devices(1), POOLS, semantics)
    assert placement.guest is None
    assert placement.host is before
    assert len(placement.pools or ()) == 0


@pytest.mark.parametrize("semantics", [CURRENT, NEWTON])
def test_too_few_devices(semantics):
    before = host(cell())
    placement = place(before, None, None, devices(2), POOLS, semantics)
    assert isinstance(placement.error, errors.PciDeviceRequestFailed)
    assert (placement.host, placement.pools) == (before, POOLS)


def test_today_cells_that_cannot_be_counted_keep_their_devices():
    before = host(cell(pages=()))
    today = place(before, guest(want()), None, devices(1), POOLS, CURRENT)
    assert isinstance(today.error, errors.HostPagesUnknown)
    assert (today.host, today.pools, today.taken) == (before, POOLS, ())
    assert today.guest is not None
    newton = place(before, guest(want()), None, devices(1), POOLS, NEWTON)
    assert newton.error is None
    assert newton.pools == pci.Pools()
