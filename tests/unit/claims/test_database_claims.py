from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from scheduler import errors
from scheduler.claims.backend import Booked, Lost, Repeated
from tests.unit.claims.fleets import GB, a_name
from tests.waiting import wait_until

SECONDS = 30

#: What of a statement tells which of the three reads it is.
SIGNS = ("FROM claims", "instances.task_state", "compute_nodes.free_ram_mb")


def test_a_claim_is_seen_by_every_worker_at_once(fleet, worker):
    one, other = worker(), worker()
    name = a_name()
    (host,) = one.hosts("req-1", 3 * GB, name)
    assert fleet.claims() == {name: host}
    other.manager.refresh()
    assert other.free_mb()[host] == GB
    assert one.free_mb()[host] == GB


@pytest.mark.parametrize("gb", [1, 3])
def test_what_was_decided_before_others_claimed_is_decided_again(fleet, worker, gb):
    """Also where both would fit: only a decision can tell."""
    one, other = worker(), worker()
    name = a_name()
    pending = other.decide("req-2", gb * GB, name)
    assert one.hosts("req-1", 3 * GB, a_name()) == pending.hosts
    assert pending.book() == Lost()
    assert other.free_mb()[pending.hosts[0]] == GB
    (host,) = other.hosts("req-2", gb * GB, name)
    assert fleet.claims()[name] == host != pending.hosts[0]
    fleet.check()


def test_a_claim_counted_just_before_hosts_are_locked_wins(fleet, worker, monkeypatch):
    one, other = worker(), worker()
    pending = other.decide("req-2", 3 * GB, a_name())
    writer = other.driver.claims.writer
    write_locked = writer._write_locked

    def late(batch, **how):
        assert one.hosts("req-1", 3 * GB, a_name()) == pending.hosts
        other.manager.refresh()
        write_locked(batch, **how)

    monkeypatch.setattr(writer, "_write_locked", late)
    monkeypatch.setattr(writer, "_is_contended", True)
    assert pending.book() == Lost()
    fleet.check()


def test_an_arrival_is_counted_once_all_the_time(fleet, worker):
    one, other = worker(), worker()
    name = a_name()
    fleet.wait_for_host(name, 3 * GB)
    (host,) = one.hosts("req-1", 3 * GB, name)
    for each in (one, other):
        each.manager.refresh()
        assert each.free_mb()[host] == GB
    fleet.arrive(name, host)
    for each in (one, other, one, other):
        each.manager.refresh()
        assert each.free_mb()[host] == GB


@pytest.mark.parametrize("state", [None, "scheduling"])
def test_an_instance_that_is_not_counted_yet_keeps_its_claim(fleet, worker, state):
    one = worker()
    name = a_name()
    fleet.wait_for_host(name, 3 * GB)
    (host,) = one.hosts("req-1", 3 * GB, name)
    fleet.change(name, None, host=host, node=host, vm_state="building", task_state=state)
    one.manager.refresh()
    assert one.free_mb()[host] == GB


@pytest.mark.parametrize("end", ["fail", "delete"])
def test_a_claim_ends_with_its_instance(fleet, worker, clock, end):
    one, other = worker(), worker()
    name = a_name()
    fleet.wait_for_host(name, 3 * GB)
    (host,) = one.hosts("req-1", 3 * GB, name)
    getattr(fleet, end)(name)
    for each in (one, other):
        each.manager.refresh()
        assert each.free_mb()[host] == 4 * GB
    clock.ahead_seconds += 5
    one.manager.refresh()
    assert fleet.claims() == {}


def test_a_claim_of_a_worker_that_died_is_closed_by_another(fleet, worker, clock):
    name = a_name()
    fleet.wait_for_host(name, GB)
    (host,) = worker().hosts("req-1", GB, name)
    other = worker()
    fleet.arrive(name, host)
    other.manager.refresh()
    clock.ahead_seconds += 20
    other.manager.refresh()
    assert fleet.claims() == {}
    assert other.free_mb()[host] == 3 * GB


def test_a_claim_for_an_instance_that_never_comes_expires(fleet, worker, clock):
    one = worker()
    (host,) = one.hosts("req-1", 3 * GB, a_name())
    clock.ahead_seconds += 599
    one.manager.refresh()
    assert one.free_mb()[host] == GB
    clock.ahead_seconds += 2
    one.manager.refresh()
    assert one.free_mb()[host] == 4 * GB
    clock.ahead_seconds += 5
    one.manager.refresh()
    assert fleet.claims() == {}


def test_a_move_is_not_ended_by_the_instance_on_its_source(fleet, worker):
    one = worker()
    name = a_name()
    fleet.wait_for_host(name, GB)
    fleet.arrive(name, "h3")
    (host,) = one.hosts("req-1", 2 * GB, name)
    assert host != "h3"
    for _time in range(2):
        one.manager.refresh()
        assert one.free_mb() == {"h1": 4 * GB, "h2": 4 * GB, "h3": 3 * GB, host: 2 * GB}


def test_a_retry_replaces_the_claim_of_the_instance(fleet, worker):
    one, other = worker(), worker()
    name = a_name()
    fleet.wait_for_host(name, 3 * GB)
    (first,) = one.hosts("req-1", 3 * GB, name)
    (second,) = other.hosts("req-2", 3 * GB, name)
    assert first != second
    assert fleet.claims() == {name: second}
    one.manager.refresh()
    assert one.free_mb()[first] == 4 * GB
    assert one.free_mb()[second] == other.free_mb()[second] == GB


def test_the_same_request_gets_the_same_answer_from_any_worker(fleet, worker):
    one, other = worker(), worker()
    names = [a_name(), a_name()]
    first = one.select("req-1", GB, *names, return_alternates=True)
    again = other.select("req-1", GB, *names, return_alternates=True)
    assert [[each.service_host for each in many] for many in again] == [
        [each.service_host for each in many] for many in first
    ]
    assert again[0][0].limits.memory_mb == first[0][0].limits.memory_mb
    assert len(again[0]) > 1
    assert len(fleet.claims()) == 2


def test_the_same_request_decided_by_two_workers_at_once(fleet, worker):
    one, other = worker(), worker()
    name = a_name()
    late, first = other.decide("req-1", GB, name), one.decide("req-1", GB, name)
    assert first.book() == Booked(first.decided.selections)
    answer = late.book()
    assert isinstance(answer, Repeated)
    assert [row[0].service_host for row in answer.selections] == first.hosts
    other.manager.refresh()
    assert sum(other.free_mb().values()) == 11 * GB


def test_the_answer_stays_after_the_instance_has_arrived(fleet, worker, clock):
    one, other = worker(), worker()
    name = a_name()
    fleet.wait_for_host(name, GB)
    (host,) = one.hosts("req-1", GB, name)
    fleet.arrive(name, host)
    one.manager.refresh()
    clock.ahead_seconds += 5
    one.manager.refresh()
    assert fleet.claims() == {}
    other.manager.refresh()
    assert other.hosts("req-1", GB, name) == [host]
    assert fleet.claims() == {}


def test_all_instances_of_a_request_or_none(fleet, worker):
    one = worker()
    with pytest.raises(errors.NoValidHost):
        one.hosts("req-1", 3 * GB, *[a_name() for _ in range(4)])
    assert fleet.claims() == {}
    assert set(one.free_mb().values()) == {4 * GB}
    assert sorted(one.hosts("req-2", 3 * GB, *[a_name() for _ in range(3)])) == fleet.hosts


def test_a_caching_driver_sees_new_claims(fleet, worker):
    one, caching = worker(), worker(driver="caching_scheduler")
    (host,) = one.hosts("req-1", 3 * GB, a_name())
    assert caching.hosts("req-2", 3 * GB, a_name()) != [host]
    fleet.check()


def test_a_caching_driver_misses_no_claim_that_came_and_went(fleet, worker, clock):
    one, caching = worker(), worker(driver="caching_scheduler")
    name = a_name()
    fleet.wait_for_host(name, 3 * GB)
    (host,) = one.hosts("req-1", 3 * GB, name)
    fleet.arrive(name, host)
    one.manager.refresh()
    clock.ahead_seconds += 5
    one.manager.refresh()
    assert fleet.claims() == {}
    assert caching.free_mb()[host] == 4 * GB
    assert caching.hosts("req-2", 3 * GB, a_name()) != [host]
    fleet.check()


def test_a_bigger_claim_of_another_worker_is_not_taken_for_the_own_one(fleet, worker):
    one, other = worker(), worker()
    name = a_name()
    fleet.wait_for_host(name, GB)
    (host,) = one.hosts("req-1", GB, name)
    for each in fleet.hosts:
        if each != host:
            fleet.fill(each)
    other.hosts("req-2", 3 * GB, name)
    one.manager.refresh()
    assert one.free_mb()[host] == GB


def test_a_claim_found_while_a_look_is_under_way_is_not_taken_for_gone(fleet, worker):
    one, other = worker(), worker()
    pending = other.decide("req-2", GB, a_name())
    reservations = other.manager.reservations
    reservations.read_claims()
    (host,) = one.hosts("req-1", 2 * GB, a_name())
    assert pending.book() == Lost()
    assert other.free_mb()[host] == 2 * GB
    reservations.settle(other.manager.clock())
    assert other.free_mb()[host] == 2 * GB


@pytest.mark.parametrize("is_full", [False, True])
def test_claims_are_read_before_instances_and_those_before_reports(fleet, worker, is_full):
    one = worker()
    name = a_name()
    fleet.wait_for_host(name, GB)
    (host,) = one.hosts("req-1", GB, name)
    fleet.arrive(name, host)
    if is_full:
        one.manager._full_at = None
    read = []

    def note(_connection, _cursor, statement, *_others):
        read.extend(part for part in SIGNS if part in statement)

    sa.event.listen(one.database.engine, "before_cursor_execute", note)
    one.manager.refresh()
    assert tuple(dict.fromkeys(read)) == SIGNS


@pytest.mark.parametrize("end", ["fail", "delete"])
def test_an_end_that_only_a_full_read_can_see(fleet, worker, clock, end):
    one = worker()
    name = a_name()
    fleet.wait_for_host(name, 3 * GB)
    (host,) = one.hosts("req-1", 3 * GB, name)
    getattr(fleet, end)(name)
    clock.ahead_seconds += 400
    one.manager.refresh()
    assert one.free_mb()[host] == 4 * GB


def test_claims_are_counted_on_every_host_before_the_first_request(fleet, worker):
    one, other = worker(), worker()
    for each in (one, other, one):
        each.driver.claims.prepare()
        assert sorted(host for host, _node in each.manager.reservations.host_ids) == fleet.hosts
    assert one.manager.reservations.host_ids == other.manager.reservations.host_ids


def test_two_workers_that_begin_to_count_at_once(fleet, worker, monkeypatch):
    one, other = worker(), worker()
    writer = other.driver.claims.writer
    read = writer._ids_of
    answers = iter([{}])
    monkeypatch.setattr(writer, "_ids_of", lambda keys: next(answers, None) or read(keys))
    one.hosts("req-1", GB, a_name())
    one.driver.claims.prepare()
    other.driver.claims.prepare()
    assert other.manager.reservations.host_ids == one.manager.reservations.host_ids


def test_an_arrival_in_the_middle_of_a_read_is_not_missed(fleet, worker, clock):
    one = worker()
    name = a_name()
    fleet.wait_for_host(name, 3 * GB)
    clock.ahead_seconds += 30
    (host,) = one.hosts("req-1", 3 * GB, name)
    fleet.change(name, None, task_state=None)  # so that the next read looks at it
    moments = iter([True])

    def arrive(_connection, _cursor, statement, *_others):
        if SIGNS[1] in statement and next(moments, False):
            fleet.arrive(name, host)

    sa.event.listen(one.database.engine, "before_cursor_execute", arrive)
    for _time in range(3):
        one.manager.refresh()
        assert one.free_mb()[host] == GB
    assert not next(moments, False), "nothing arrived"


def test_a_request_reads_when_the_write_under_way_has_ended(fleet, worker, monkeypatch):
    """So it knows what that found, and those that came meanwhile share a read and a write."""
    one = worker()
    batches = one.driver.claims.writer._write_with_others
    refresh = one.manager.refresh
    write, begun, may_end, events = batches._write, threading.Event(), threading.Event(), []

    def write_slowly(batch):
        begun.set()
        assert may_end.wait(SECONDS)
        write(batch)
        events.append("written")

    def read(arrived_at):
        events.append("read")
        refresh(arrived_at)

    batches._write = write_slowly
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(one.hosts, "req-1", GB, a_name())
        assert begun.wait(SECONDS)
        monkeypatch.setattr(one.manager, "refresh", read)
        second = pool.submit(one.hosts, "req-2", GB, a_name())
        wait_until(lambda: len(batches._changed._waiters) == 1, SECONDS, "the second waits")
        may_end.set()
        assert len(first.result(SECONDS)) == len(second.result(SECONDS)) == 1
    assert events == ["written", "read", "written"]
    fleet.check()
