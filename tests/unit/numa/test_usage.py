"""Counting guests in (reference page numa_pci, section 6)."""

import pytest

from scheduler import errors
from scheduler.numa import CURRENT, NEWTON, Pages, consume
from tests.unit.numa.builders import cell, guest, host, want

PAIRS = [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("semantics", "siblings", "threads", "cpu_usage", "taken"),
    [
        (NEWTON, PAIRS, None, 1, {0}),
        (NEWTON, PAIRS, "isolate", 2, {0, 1}),
        (NEWTON, [], "isolate", 1, set()),
        (CURRENT, PAIRS, None, 0, {0}),
        (CURRENT, PAIRS, "isolate", 0, {0, 1}),
        (CURRENT, [], "isolate", 0, {0}),
    ],
)
def test_pinned(semantics, siblings, threads, cpu_usage, taken):
    fitted = guest(want([7], "dedicated", pins=((7, 0),), thread_policy=threads))
    after = consume(host(cell(siblings=siblings)), fitted, semantics)
    assert after.cells[0].cpu_usage == cpu_usage
    assert after.cells[0].pinned == taken
    assert after.cells[0].memory_usage_mb == 1024


def test_the_emulators_cpu_is_pinned_too():
    fitted = guest(want([0], "dedicated", pins=((0, 0),), reserved=frozenset({3})))
    after = consume(host(cell()), fitted, CURRENT)
    assert after.cells[0].pinned == {0, 3}
    assert consume(host(cell()), fitted, NEWTON).cells[0].cpu_usage == 2


@pytest.mark.parametrize(
    ("pins", "error"),
    [(((0, 9),), errors.CPUPinningUnknown), (((0, 1),), errors.CPUPinningInvalid)],
)
def test_errors(pins, error):
    with pytest.raises(error):
        consume(host(cell(pinned=[1])), guest(want([0], "dedicated", pins=pins)), CURRENT)


@pytest.mark.parametrize("semantics", [NEWTON, CURRENT])
def test_pages_of_two_guests(semantics):
    wish, after = guest(want(pagesize=2048)), host(cell(pages=(Pages(2048, 4096),)))
    for _ in range(2):
        after = consume(after, wish, semantics)
    assert after.cells[0].pages[0].used == 1024


def test_today_a_cell_without_pages_cannot_be_counted():
    with pytest.raises(errors.HostPagesUnknown, match="NUMA cell 3"):
        consume(host(cell(3, pages=())), guest(want(number=3)), CURRENT)
    assert consume(host(cell(3, pages=())), guest(want(number=3)), NEWTON).cells[0].cpu_usage == 2
