"""Fitting whole topologies: order, pages, limits, devices, networks, effort."""

from __future__ import annotations

import time

import pytest

from scheduler import pci
from scheduler.numa import (
    CURRENT,
    NEWTON,
    Limits,
    Networks,
    Pages,
    Rules,
    Wish,
)
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
    ("first", "second", "ratios", "expected"),
    [
        ({"cpu_usage": 15}, {"cpu_usage": 14}, (4.0, 1.5), [1]),
        ({"memory_usage_mb": 11265}, {"memory_usage_mb": 11264}, (4.0, 1.5), [1]),
        ({"cpu_usage": 16}, {"memory_usage_mb": 20000}, (4.0, 1.5), None),
    ],
)
def test_limits(semantics, first, second, ratios, expected):
    place = host(cell(0, range(4), **first), cell(1, range(4, 8), **second))
    assert fitted(place, guest(want()), Limits(*ratios), semantics=semantics) == expected


@BOTH
def test_the_second_selection(semantics):
    place = host(cell(0, range(6)), cell(1, range(6, 8), memory_mb=2048, pages=()))
    wish = guest(want(), want(range(2, 6), number=1, memory_mb=4096))
    assert fitted(place, wish, semantics=semantics) == [1, 0]


@BOTH
@pytest.mark.parametrize(
    ("hosts", "guests"), [(0, 1), (1, 0), (1, 2)], ids=["no cells", "no guest", "too many"]
)
def test_nothing_to_fit(semantics, hosts, guests):
    place = host(*(cell(n, range(n * 4, n * 4 + 4)) for n in range(hosts)))
    wish = guest(*(want([n], number=n) for n in range(guests)))
    assert fitted(place, wish, semantics=semantics) is None


@BOTH
@pytest.mark.parametrize(
    ("wish", "memory_mb", "pages", "size_kb"),
    [
        (-1, 1024, WITH_2M, 4),
        (-2, 1024, WITH_2M, 2048),
        (-3, 1024, (*WITH_2M, Pages(GIB_KB, 4)), GIB_KB),
        (-3, 1022, (*WITH_2M, Pages(GIB_KB, 4)), 2048),
        (-2, 1022, (*SMALL_ONLY, Pages(2048, 1024, 256, 257)), 2048),
        (-2, 1024, (*SMALL_ONLY, Pages(2048, 1024, 256, 257)), None),
        (-2, 1024, SMALL_ONLY, None),
        (2048, 1024, WITH_2M, 2048),
        (2048, 1023, WITH_2M, None),
        (2048, 1024, WITH_1G, None),
        (-3, 1024, (), None),
    ],
)
def test_page_wishes(semantics, wish, memory_mb, pages, size_kb):
    found = fit(
        host(cell(pages=pages)),
        guest(want(pagesize=wish, memory_mb=memory_mb)),
        semantics=semantics,
    )
    assert (found and found.cells[0].pagesize) == size_kb


@BOTH
def test_a_page_size_once_settled_stays(semantics):
    place = host(cell(0, pages=WITH_2M), cell(1, range(4, 6), pages=WITH_1G))
    wish = guest(want([0], pagesize=-2), want([1, 2, 3], number=1, pagesize=-2))
    assert fitted(place, wish, semantics=semantics) is None


@pytest.mark.parametrize(
    ("semantics", "pages", "policy", "expected"),
    [
        (NEWTON, (Pages(4, 1),), None, [0]),
        (CURRENT, (Pages(4, 1),), None, None),
        (CURRENT, (Pages(4, 262144, 262144),), None, [0]),
        (CURRENT, (Pages(4, 262144, 262144),), "dedicated", None),
        (NEWTON, (Pages(4, 262144, 262144),), "dedicated", [0]),
        (CURRENT, (Pages(2048, 2048, 0),), "dedicated", [0]),
        (CURRENT, (Pages(GIB_KB * 3, 2048, 0),), None, None),
        (CURRENT, (), None, [0]),
    ],
)
def test_no_wish_for_pages(semantics, pages, policy, expected):
    place = host(cell(pages=pages))
    assert fitted(place, guest(want(policy=policy)), semantics=semantics) == expected


@pytest.mark.parametrize(
    ("semantics", "pages", "expected"),
    [(NEWTON, SMALL_ONLY, None), (CURRENT, SMALL_ONLY, [0]), (CURRENT, (), None)],
)
def test_memory_of_pinned_guests(semantics, pages, expected):
    place = host(cell(memory_usage_mb=7169, pages=pages))
    found = fitted(place, guest(want(policy="dedicated")), Limits(16.0, 9.0), semantics=semantics)
    assert found == expected


@pytest.mark.parametrize(
    ("pack", "policy", "wants_devices", "expected"),
    [
        (False, None, False, [2]),
        (True, None, False, [1]),
        (False, "dedicated", False, [2]),
        (True, "dedicated", False, [1]),
        (False, None, True, [0]),
        (True, None, True, [0]),
    ],
)
def test_today_prefers_cells(pack, policy, wants_devices, expected):
    place = host(
        cell(0, cpu_usage=1, memory_usage_mb=10),
        cell(1, range(4, 8), cpu_usage=2, memory_usage_mb=20, pinned=[4]),
        cell(2, range(8, 12)),
    )
    pools = pci.Pools.from_text(
        '[{"vendor_id": "1", "product_id": "2", "numa_node": 0, "count": 1}]'
    )
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


@BOTH
def test_a_dedicated_cell_without_cpus_never_fits(semantics):
    assert fitted(host(cell()), guest(want([], "dedicated")), semantics=semantics) is None


@pytest.mark.parametrize(("pcpus", "expected"), [(range(4), [0]), (range(2, 4), None)])
def test_only_undivided_hosts_isolate_today(pcpus, expected):
    place = host(cell(0, range(4), pcpus=pcpus, siblings=[[0, 1], [2, 3]]))
    wish = guest(want([0], "dedicated", thread_policy="isolate"))
    assert fitted(place, wish) == expected
    assert fitted(place, wish, semantics=NEWTON) == [0]


@BOTH
def test_a_hopeless_guest_is_given_up_soon(semantics):
    place = host(*(cell(n, range(n * 4, n * 4 + 4)) for n in range(12)))
    wishes = [want([n], number=n) for n in range(11)]
    wish = guest(*wishes, want(range(5), number=11))
    start = time.process_time()
    assert fitted(place, wish, semantics=semantics) is None
    # Twelve cells have half a billion orders.
    assert time.process_time() - start < 5
