"""Fitting whole topologies where no worked example shows it."""

import time

import pytest

from scheduler.numa import CURRENT, NEWTON, GuestTopology, Rules, Wish
from tests.unit.numa.builders import cell, guest, host, want

BOTH = pytest.mark.parametrize("semantics", [CURRENT, NEWTON], ids=["current", "newton"])


def fitted(host, guest, semantics=CURRENT):
    found = Wish(guest, (), None, Rules(semantics)).fit(host, None)
    return None if found is None else [each.id for each in found.cells]


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
    assert fitted(place, wish, semantics) is None
    # Twelve cells have half a billion orders.
    assert time.process_time() - start < 5
