"""Fitting whole topologies where no worked example shows it: order, effort."""

import time

import pytest

from scheduler import pci
from scheduler.numa import CURRENT, NEWTON, GuestTopology, Rules, Wish
from tests.unit.numa.builders import cell, guest, host, want

BOTH = pytest.mark.parametrize("semantics", [CURRENT, NEWTON], ids=["current", "newton"])
ONE_DEVICE = '[{"vendor_id": "1", "product_id": "2", "numa_node": 0, "count": 1}]'


def fitted(host, guest, requests=(), pools=None, semantics=CURRENT, pack=False):
    found = Wish(guest, requests, None, Rules(semantics, pack)).fit(host, pools)
    return None if found is None else [each.id for each in found.cells]


@pytest.mark.parametrize(
    ("pack", "policy", "wants_devices", "expected"),
    [
        (False, None, False, [2]),
        (True, None, False, [3]),
        (False, "dedicated", False, [2]),
        (True, "dedicated", False, [1]),
        (False, None, True, [0]),
        (True, None, True, [0]),
    ],
)
def test_today_prefers_cells(pack, policy, wants_devices, expected):
    place = host(
        cell(0, cpu_usage=1, memory_usage_mb=20),
        cell(1, range(4, 8), cpu_usage=2, memory_usage_mb=10, pinned=[4]),
        cell(2, range(8, 12)),
        cell(3, range(12, 16), cpu_usage=3, memory_usage_mb=5),
    )
    pools = pci.Pools.from_text(ONE_DEVICE)
    requests = (pci.Request(1, ((("vendor_id", "1"),),)),) if wants_devices else ()
    found = fitted(place, guest(want(policy=policy)), requests, pools, CURRENT, pack=pack)
    assert found == expected
    newton = fitted(place, guest(want(policy=policy)), requests, pools, NEWTON, pack=pack)
    assert newton == [0]


def test_a_page_size_of_zero_asks_for_none():
    asked = guest(want(pagesize=0)).to_object()
    assert asked.cells[0].pagesize == 0
    assert fitted(host(cell()), GuestTopology.from_object(asked)) == [0]


@BOTH
def test_a_hopeless_guest_is_given_up_soon(semantics):
    place = host(*(cell(n, range(n * 4, n * 4 + 4)) for n in range(12)))
    wishes = [want([n], number=n) for n in range(11)]
    wish = guest(*wishes, want(range(5), number=11))
    start = time.process_time()
    assert fitted(place, wish, semantics=semantics) is None
    # Twelve cells have half a billion orders.
    assert time.process_time() - start < 5
