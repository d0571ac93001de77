"""One read serves everyone who was waiting when it began."""

import threading
from concurrent.futures import Future

import pytest

from scheduler.hosts.refresh import SharedRun

SECONDS = 60


class SlowRead:
    """A read that stays under way until it is let go."""

    def __init__(self):
        self.begun = threading.Semaphore(0)
        self.go_on = threading.Semaphore(0)
        self.runs = 0
        self.error = None

    def __call__(self):
        self.runs += 1
        self.begun.release()
        assert self.go_on.acquire(timeout=SECONDS)
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


@pytest.mark.parametrize("error", [None, RuntimeError("gone")])
def test_callers_during_a_read_share_the_next_one_and_its_error(error):
    read, gathered = SlowRead(), []
    shared = SharedRun(read, gather=lambda: gathered.append(read.runs))
    [first] = in_threads(shared, 1)
    assert read.begun.acquire(timeout=SECONDS)
    later = in_threads(shared, 5)
    read.go_on.release()
    first.result(timeout=SECONDS)
    assert read.begun.acquire(timeout=SECONDS)  # the second read began after they arrived
    read.error = error
    read.go_on.release(5)  # a straggler may have missed the second read
    assert [future.exception(timeout=SECONDS) for future in later] == [error] * 5
    assert read.runs < 5
    assert gathered[0] == 1  # others may come before a read that somebody has waited for


@pytest.mark.parametrize("arrived_at", [99.0, 100.0])
def test_who_had_arrived_before_a_read_began_waits_for_that_one(arrived_at):
    read = SlowRead()
    shared = SharedRun(read, lambda: 100.0)
    calls = in_threads(lambda: shared(99.0), 1)
    assert read.begun.acquire(timeout=SECONDS)
    calls += in_threads(lambda: shared(arrived_at), 1)
    read.go_on.release(2)
    for call in calls:
        call.result(timeout=SECONDS)
    assert read.runs == (1 if arrived_at < 100.0 else 2)


def test_requests_that_had_arrived_before_a_read_began_share_it_even_when_it_is_over():
    """One that failed serves nobody who comes later."""
    now, reads, errors = [100.0], [], [RuntimeError("gone")]

    def read():
        reads.append(now[0])
        if errors:
            raise errors.pop()

    shared = SharedRun(read, lambda: now[0])
    with pytest.raises(RuntimeError):
        shared(99.0)
    shared(99.0)
    shared(99.5)
    assert reads == [100.0, 100.0]
    now[0] = 101.0
    for arrived_at in (100.5, 100.5, 101.0, None):  # the last two not before it began
        shared(arrived_at)
    assert reads == [100.0, 100.0, 101.0, 101.0, 101.0]
