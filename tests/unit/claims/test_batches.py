"""What callers bring while a write runs is written together, by the next one."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from scheduler.claims.writer import Batches
from tests.waiting import wait_until

SECONDS = 30


class Gate:
    """A write that waits to be let through, and remembers what it wrote."""

    def __init__(self):
        self.begun, self.open = threading.Event(), threading.Event()
        self.batches, self.error = [], None

    def __call__(self, batch):
        self.batches.append(sorted(batch))
        self.begun.set()
        assert self.open.wait(SECONDS)
        if self.error is not None:
            raise self.error


def crowd(gate, pool):
    """One item in a write that waits at *gate*, three more that wait for it."""
    batches = Batches(gate)
    first = pool.submit(batches, "a")
    assert gate.begun.wait(SECONDS)
    others = [pool.submit(batches, item) for item in "bcd"]
    wait_until(lambda: len(batches._waiting) == 3, SECONDS, "three that wait")
    return batches, [first, *others]


def test_what_waits_is_written_together():
    gate = Gate()
    with ThreadPoolExecutor(4) as pool:
        batches, futures = crowd(gate, pool)
        gate.open.set()
        assert [each.result(SECONDS) for each in futures] == [None] * 4
    assert gate.batches == [["a"], ["b", "c", "d"]]
    batches("e")
    assert gate.batches[2:] == [["e"]]
    assert (batches._waiting, batches._finished) == ([], {})


def test_an_error_is_raised_in_all_whose_items_were_written():
    gate = Gate()
    with ThreadPoolExecutor(4) as pool:
        batches, (first, *others) = crowd(gate, pool)
        gate.error = ValueError("no")
        gate.open.set()
        for each in (first, *others):
            with pytest.raises(ValueError, match="no"):
                each.result(SECONDS)
    gate.error = None
    batches("e")
    assert gate.batches == [["a"], ["b", "c", "d"], ["e"]]


def test_who_comes_before_a_write_begins_is_part_of_it():
    written, futures = [], []
    with ThreadPoolExecutor(3) as pool:

        def gather():
            if not futures:
                futures.extend(pool.submit(batches, item) for item in "bc")
                wait_until(lambda: len(batches._waiting) == 3, SECONDS, "two more that wait")

        batches = Batches(lambda batch: written.append(sorted(batch)), gather)
        batches("a")
        assert [each.result(SECONDS) for each in futures] == [None, None]
    assert written == [["a", "b", "c"]]


def test_an_error_before_a_write_begins_leaves_nothing_behind():
    errors, written = [ValueError("no")], []

    def gather():
        if errors:
            raise errors.pop()

    batches = Batches(written.append, gather)
    with pytest.raises(ValueError, match="no"):
        batches("a")
    batches("b")
    assert written == [["b"]]
    assert batches._finished == {}
