"""One read serves everyone who was waiting when it began."""

import threading
from concurrent.futures import Future

import pytest

from scheduler.hosts.refresh import SharedRun
from tests.waiting import wait_until


class SlowRead:
    """A read that stays under way until it is let go."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.go_on = threading.Semaphore(0)
        self.runs = 0
        self.error: Exception | None = None

    def __call__(self) -> None:
        self.runs += 1
        self.begun.release()
        assert self.go_on.acquire(timeout=60)
        if self.error:
            raise self.error


def in_threads(target, number):
    """The futures of *number* calls, each in a thread of its own that ends with the tests."""
    futures = [Future() for _ in range(number)]

    def run(future):
        try:
            future.set_result(target())
        except Exception as error:  # noqa: BLE001 - raised again by the future
            future.set_exception(error)

    for future in futures:
        threading.Thread(target=run, args=[future], daemon=True).start()
    return futures


def join(futures):
    """Wait for all; raises what one of them has raised."""
    for future in futures:
        future.result(timeout=60)


def test_callers_during_a_read_share_the_next_one():
    read = SlowRead()
    shared = SharedRun(read)
    first = in_threads(shared, 1)
    assert read.begun.acquire(timeout=60)
    later = in_threads(shared, 5)
    read.go_on.release()
    join(first)
    assert read.begun.acquire(timeout=60)  # the second read began after they arrived
    read.go_on.release()
    read.go_on.release()  # a straggler may have missed the second read
    join(later)
    assert 2 <= read.runs <= 3


def test_an_error_reaches_every_caller_that_shared_the_read():
    read = SlowRead()
    shared = SharedRun(read)
    first = in_threads(shared, 1)
    assert read.begun.acquire(timeout=60)
    later = in_threads(shared, 2)
    read.go_on.release()
    join(first)
    assert read.begun.acquire(timeout=60)
    read.error = RuntimeError("gone")
    read.go_on.release(2)
    for each in later:
        with pytest.raises(RuntimeError, match="gone"):
            join([each])


def test_requests_that_had_arrived_before_a_read_began_share_it_even_when_it_is_over():
    now, reads = [100.0], []
    shared = SharedRun(lambda: reads.append(now[0]), lambda: now[0])
    shared(99.0)
    shared(99.5)
    assert reads == [100.0]
    now[0] = 101.0
    for arrived_at in (100.5, 100.5, 101.0, None):  # the last two not before it began
        shared(arrived_at)
    assert reads == [100.0, 101.0, 101.0, 101.0]


def test_who_had_arrived_before_a_read_began_waits_for_that_one():
    read = SlowRead()
    shared = SharedRun(read, lambda: 100.0)
    first = in_threads(shared, 1)
    assert read.begun.acquire(timeout=10)
    others = in_threads(lambda: shared(99.0), 3)
    read.go_on.release()
    join([*first, *others])
    assert read.runs == 1


def test_a_failed_read_is_good_for_nobody_who_comes_later():
    outcomes = [None, RuntimeError("gone")]

    def read():
        if error := outcomes.pop():
            raise error

    shared = SharedRun(read, lambda: 100.0)
    with pytest.raises(RuntimeError):
        shared(99.0)
    shared(99.0)
    assert outcomes == []


def test_who_comes_before_a_read_begins_shares_it():
    reads, futures = [], []

    def gather():
        futures.extend(in_threads(shared, 3))
        wait_until(lambda: len(shared._changed._waiters) == 3, 60, "three that wait")

    shared = SharedRun(lambda: reads.append(1), gather=gather)
    shared()
    join(futures)
    assert reads == [1]
