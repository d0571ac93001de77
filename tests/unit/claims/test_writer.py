"""Requests that are written together: each has its own end, whatever befalls the others."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import sqlalchemy as sa

from scheduler import errors
from scheduler.claims import writer as claims_writer
from scheduler.claims.backend import Booked, Lost
from scheduler.claims.writer import Write
from tests.unit.claims.fleets import GB, a_name
from tests.waiting import wait_until

SECONDS = 30


def test_what_others_wrote_is_lost_alone(fleet, worker, monkeypatch):
    """The rest of the same transaction is booked."""
    one, other = worker(), worker()
    meeting, apart = other.decide("req-1", 3 * GB, a_name()), other.decide("req-2", GB, a_name())
    assert meeting.hosts != apart.hosts
    one.hosts("req-x", 3 * GB, a_name())
    writer = other.driver.claims.writer
    batch = [Write(f"req-{number}", each.decided) for number, each in enumerate((meeting, apart))]
    writer._write(batch)
    assert [type(each.result) for each in batch] == [Lost, Booked]
    other.manager.refresh()
    assert sum(other.free_mb().values()) == (12 - 3 - 1) * GB


def test_who_loses_several_races_in_a_row_lets_others_go_first(fleet, worker, monkeypatch):
    """It then decides on what they have written meanwhile, and waits no more once it has won."""
    one, other = worker(), worker()
    commit, tries, pauses = other.driver.claims.writer._claim, [], []

    def claim(*arguments):
        tries.append(arguments)
        if len(tries) <= 7:  # on the emptiest host, as the other one
            one.hosts(f"req-{len(tries)}", GB // 8, a_name())
        commit(*arguments)

    def sleep(seconds):
        pauses.append(seconds)
        one.hosts(f"req-{seconds}", GB // 8, a_name())

    monkeypatch.setattr(other.driver.claims.writer, "_claim", claim)
    monkeypatch.setattr(random, "uniform", max)
    monkeypatch.setattr(claims_writer, "time", SimpleNamespace(monotonic=int, sleep=sleep))
    for number in range(2):
        other.hosts(f"req-other-{number}", GB // 8, a_name())
    assert pauses == [0.004, 0.008, 0.016, 0.032]
    assert len(tries) == 7 + 2
    fleet.check()


def test_a_value_that_no_column_holds_fails_its_own_request(fleet, worker):
    """The others of the same transaction are booked, and it is no fault of the database."""
    one = worker()
    good, bad, other = (one.decide(f"req-{number}", GB, a_name()) for number in range(3))
    batch = [
        Write(request_id, each.decided)
        for request_id, each in (("req-1", good), ("req-\ud800", bad), ("req-2", other))
    ]
    one.driver.claims.writer._write(batch)
    assert [isinstance(each.result, Booked) for each in batch] == [True, False, True]
    assert len(fleet.claims()) == 2
    assert sum(one.free_mb().values()) == (12 - 2) * GB
    with pytest.raises(errors.InvalidRequest):
        one.hosts("req-\ud800", GB, a_name())
    assert one.hosts("req-3", GB, a_name())


def test_two_requests_for_one_instance_are_no_matter_of_their_neighbours(fleet, worker):
    """The second one replaces the claim of the first, as if it had come a moment later."""
    one, name, other = worker(), a_name(), a_name()
    several = [one.decide(f"req-{n}", GB, each) for n, each in enumerate((name, other, name))]
    batch = [Write(f"req-{number}", each.decided) for number, each in enumerate(several)]
    one.driver.claims.writer._write(batch)
    assert [type(each.result) for each in batch] == [Booked] * 3
    assert fleet.claims() == {other: several[1].hosts[0], name: several[2].hosts[0]}
    for _ in range(2):
        one.manager.refresh()
    assert sum(one.free_mb().values()) == (12 - 2) * GB


class SlowWrites:
    """Writes of a worker that wait for :meth:`end`, and may fail then; ``events`` in order."""

    def __init__(self, one, monkeypatch, error=None):
        self.events, self.begun, self._may_end = [], threading.Event(), threading.Event()
        self._writer, self._write, self._error = one.driver.claims.writer, None, error
        self._write = self._writer._write
        monkeypatch.setattr(self._writer, "_write", self)

    def __call__(self, batch):
        self.begun.set()
        assert self._may_end.wait(SECONDS)
        self.events.append(f"written: {len(batch)}")
        if self._error is not None:
            raise self._error
        self._write(batch)

    def end(self, waiting):
        """Let them end once so many wait for the one under way."""
        shared = self._writer._write_all
        wait_until(lambda: len(shared._changed._waiters) == waiting, SECONDS, "others wait")
        self._may_end.set()


def test_a_request_reads_when_the_write_under_way_has_ended(fleet, worker, monkeypatch):
    """So it knows what that found, and those that came meanwhile share a read and a write."""
    one = worker()
    refresh, writes = one.manager.refresh, SlowWrites(one, monkeypatch)

    def read(arrived_at):
        writes.events.append("read")
        refresh(arrived_at)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(one.hosts, "req-1", GB, a_name())
        assert writes.begun.wait(SECONDS)
        monkeypatch.setattr(one.manager, "refresh", read)
        second = pool.submit(one.hosts, "req-2", GB, a_name())
        writes.end(waiting=1)
        assert len(first.result(SECONDS)) == len(second.result(SECONDS)) == 1
    assert writes.events == ["written: 1", "read", "written: 1"]
    fleet.check()


@pytest.mark.parametrize("fails", [False, True])
def test_what_waits_for_a_write_is_written_together(fleet, worker, monkeypatch, fails):
    """An error is raised in all that it concerns, and nothing of theirs stays reserved."""
    one = worker()
    error = sa.exc.OperationalError("", {}, Exception("gone")) if fails else None
    several = [one.decide(f"req-{number}", GB, a_name()) for number in range(4)]
    writes = SlowWrites(one, monkeypatch, error)
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(several[0].book)]
        assert writes.begun.wait(SECONDS)
        futures += [pool.submit(each.book) for each in several[1:]]
        writes.end(waiting=3)
        outcomes = [each.exception(SECONDS) or type(each.result()) for each in futures]
    assert writes.events == ["written: 1", "written: 3"]
    assert outcomes == [error or Booked] * 4
    assert sum(one.free_mb().values()) == (12 if fails else 8) * GB


def test_a_claim_that_is_made_stays_whatever_befalls_the_next_write(fleet, worker, monkeypatch):
    """The write under way takes it along; the one that its caller waits for is of others."""
    one, name, error = worker(), a_name(), sa.exc.OperationalError("", {}, Exception("gone"))
    pending, other = one.decide("req-1", GB, name), one.decide("req-2", GB, a_name())
    writer, next_one = one.driver.claims.writer, Write("req-2", other.decided)

    def fail(_batch):
        raise error

    def write_two():
        writer._write_waiting()
        writer._waiting.append(next_one)
        monkeypatch.setattr(writer, "_write_together", fail)
        writer._write_waiting()

    monkeypatch.setattr(writer, "_write_all", write_two)
    assert pending.book() == Booked(pending.decided.selections)
    assert next_one.result is error
    assert [fleet.claims()[name]] == pending.hosts
    fleet.check()
