"""Fitting whole topologies where no recorded decision shows it: order, networks, effort."""

import time

import pytest

from scheduler import pci
from scheduler.numa import CURRENT, NEWTON, Limits, Networks, Pages, Rules, Wish, consume
from tests.unit.numa.builders import GIB_KB, cell, guest, host, want

BOTH = pytest.mark.parametrize("semantics", [CURRENT, NEWTON], ids=["current", "newton"])
SMALL_ONLY = (Pages(4, 2097152),)
WITH_2M = (*SMALL_ONLY, Pages(2048, 2048))
ONE_DEVICE = '[{"vendor_id": "1", "product_id": "2", "numa_node": 0, "count": 1}]'
WITH_1G = (*SMALL_ONLY, Pages(GIB_KB, 4, 1))


def ids(fitted):
    return None if fitted is None else [each.id for each in fitted.cells]


def fit(host, guest, limits=None, requests=(), pools=None, semantics=CURRENT, pack=False):
    return Wish(guest, requests, limits, Rules(semantics, pack)).fit(host, pools)


def fitted(host, guest, *args, **more):
    return ids(fit(host, guest, *args, **more))


@BOTH
@pytest.mark.parametrize(
    ("hosts", "guests"), [(0, 1), (1, 0), (1, 2)], ids=["no cells", "no guest", "too many"]
)
def test_nothing_to_fit(semantics, hosts, guests):
    place = host(*(cell(n, range(n * 4, n * 4 + 4)) for n in range(hosts)))
    wish = guest(*(want([n], number=n) for n in range(guests)))
    assert fitted(place, wish, semantics=semantics) is None


@BOTH
def test_a_page_size_once_settled_stays(semantics):
    place = host(cell(0, pages=WITH_2M), cell(1, range(4, 6), pages=WITH_1G))
    wish = guest(want([0], pagesize=-2), want([1, 2, 3], number=1, pagesize=-2))
    assert fitted(place, wish, semantics=semantics) is None


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
    found = fitted(place, guest(want(policy=policy)), None, requests, pools, CURRENT, pack=pack)
    assert found == expected
    newton = fitted(place, guest(want(policy=policy)), None, requests, pools, NEWTON, pack=pack)
    assert newton == [0]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Networks(frozenset({"foo"})), [1]),
        (Networks(frozenset({"bar"})), [0]),
        (Networks(tunneled=True), [1]),
        (Networks(frozenset({"far"})), None),
        (None, [0]),
    ],
)
def test_networks(wanted, expected):
    place = host(
        cell(0, networks=Networks()),
        cell(1, range(4, 8), networks=Networks(frozenset({"foo"}), tunneled=True)),
        cell(2, [8], networks=Networks(frozenset({"far"}))),
    )
    assert fitted(place, guest(want()), Limits(16.0, 1.5, wanted)) == expected


def test_the_emulators_cpu_is_pinned_too():
    fitted = guest(want([0], "dedicated", pins=((0, 0),), reserved=frozenset({3})))
    assert consume(host(cell()), fitted, CURRENT).cells[0].pinned == {0, 3}
    assert consume(host(cell()), fitted, NEWTON).cells[0].cpu_usage == 2


@BOTH
def test_a_hopeless_guest_is_given_up_soon(semantics):
    place = host(*(cell(n, range(n * 4, n * 4 + 4)) for n in range(12)))
    wishes = [want([n], number=n) for n in range(11)]
    wish = guest(*wishes, want(range(5), number=11))
    start = time.process_time()
    assert fitted(place, wish, semantics=semantics) is None
    # Twelve cells have half a billion orders.
    assert time.process_time() - start < 5
