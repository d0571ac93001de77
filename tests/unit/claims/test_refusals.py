"""Refusing a request only when nothing could hold it, and never while it has its answer."""

import pytest

from scheduler import errors
from scheduler.drivers import filter_scheduler
from tests.unit.claims.fleets import GB, a_name


@pytest.fixture
def last_host(fleet):
    """The one host that has anything left."""
    *full, last = fleet.hosts
    for host in full:
        fleet.fill(host)
    return last


def arriving(fleet, worker, ram_mb):
    """An instance that its host reports, and whose row does not say so yet."""
    name = a_name()
    fleet.wait_for_host(name, ram_mb)
    (host,) = worker.hosts("req-arriving", ram_mb, name)
    fleet.arrive(name, host, state="building")
    return name


def test_what_is_counted_twice_for_a_moment_refuses_nobody(fleet, worker, last_host):
    one = worker()
    name = arriving(fleet, one, 3 * GB)
    one.driver.pause = lambda _seconds: fleet.change(name, None, vm_state="active")
    assert one.hosts("req-1", GB, a_name()) == [last_host]


def test_what_fits_in_no_case_is_refused_at_once(fleet, worker, last_host):
    one = worker()
    arriving(fleet, one, 3 * GB)
    pauses = []
    one.driver.pause = pauses.append
    with pytest.raises(errors.NoValidHost):
        one.hosts("req-1", 2 * GB, a_name())
    assert pauses == []
    assert one.free_mb()[last_host] == (4 - 3 - 3) * GB, "counted twice, as before"


def test_who_waits_for_a_decision_that_is_lost_gets_its_place(fleet, worker, last_host):
    one = worker()
    entry = one.decide("req-1", 3 * GB, a_name())
    reservations = one.manager.reservations
    one.driver.pause = lambda _seconds: reservations.release_all(entry.decided.reservations)
    assert one.hosts("req-2", 3 * GB, a_name()) == [last_host]


def test_who_sees_places_taken_but_not_yet_those_freed_looks_again(fleet, worker, monkeypatch):
    one, tenants = worker(), {host: a_name() for host in fleet.hosts}
    for host, name in tenants.items():
        fleet.wait_for_host(name, fleet.ram_mb)
        fleet.arrive(name, host)
    refresh, leaving, taken = one.manager.refresh, list(tenants), []
    fleet.delete(tenants[leaving[0]], leaving.pop(0))

    def read_before_others_come_and_leave(*arguments):
        refresh(*arguments)
        if leaving:
            with monkeypatch.context() as undisturbed:
                undisturbed.setattr(one.manager, "refresh", refresh)
                taken.extend(one.hosts(f"req-other-{len(leaving)}", 3 * GB, a_name()))
            fleet.delete(tenants[leaving[0]], leaving.pop(0))

    one.driver.pause = lambda _seconds: None
    monkeypatch.setattr(one.manager, "refresh", read_before_others_come_and_leave)
    *before, last = fleet.hosts
    assert one.hosts("req-1", 3 * GB, a_name()) == [last]
    assert taken == before


def test_a_request_that_took_the_last_host_itself_is_answered(worker, monkeypatch):
    one, two, name = worker(), worker(), a_name()
    given = []

    def too_late(*_arguments):
        given.extend(one.hosts("req-1", GB, name))
        raise errors.NoValidHost(reason="")

    monkeypatch.setattr(two.driver, "decide", too_late)
    assert two.hosts("req-1", GB, name) == given[:1]


def test_a_request_that_lost_to_itself_again_and_again_is_answered(worker, monkeypatch):
    one, two, name = worker(), worker(), a_name()
    monkeypatch.setattr(filter_scheduler, "MOST_DECISIONS", 0)
    with pytest.raises(errors.ClaimConflict):
        two.hosts("req-1", GB, name)
    monkeypatch.undo()
    given = one.hosts("req-1", GB, name)
    monkeypatch.setattr(filter_scheduler, "MOST_DECISIONS", 0)
    assert two.hosts("req-1", GB, name) == given


def test_the_claim_of_a_request_that_nobody_waits_for_any_more_ends(fleet, worker, clock):
    one, name = worker(), a_name()
    fleet.wait_for_host(name, GB)
    fleet.fail(name)
    clock.ahead_seconds += 10
    one.hosts("req-1", GB, name)
    for _time in range(2):
        clock.ahead_seconds += 10
        one.manager.refresh()
    assert fleet.claims() == {}


def test_a_refusal_is_the_answer_everywhere(fleet, worker, last_host):
    one, two, name = worker(), worker(), a_name()
    with pytest.raises(errors.NoValidHost) as first:
        one.hosts("req-1", 5 * GB, name)
    with pytest.raises(errors.NoValidHost) as second:
        two.hosts("req-1", 5 * GB, name)
    assert str(second.value) == str(first.value)
    entry = two.decide("req-2", GB, name)
    with pytest.raises(errors.NoValidHost):
        one.hosts("req-2", 5 * GB, a_name())
    assert entry.book().outcome == "booked"
    assert fleet.claims() == {name: last_host}


def test_a_refusal_beside_an_earlier_claim_is_the_answer_everywhere(fleet, worker, last_host):
    """A retry that is asked for twice gets no host, though there is room by then."""
    one, two, name = worker(), worker(), a_name()
    fleet.wait_for_host(name, GB)
    assert one.hosts("req-1", GB, name) == [last_host]
    for each in (one, two):
        with pytest.raises(errors.NoValidHost):
            each.hosts("req-2", GB, name, ignore_hosts=[last_host])
        for filler in fleet.promised_and_present()["h1"]:
            fleet.delete(filler, "h1")
    assert fleet.claims() == {name: last_host}
