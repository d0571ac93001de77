import pytest
import sqlalchemy as sa
from oslo_db import exception as db_exception

from scheduler import errors
from scheduler.claims.backend import Booked, Lost
from scheduler.db import claims as claim_rows
from scheduler.db import tables
from scheduler.hosts.columns import seconds
from tests.unit.claims.fleets import GB, a_name


@pytest.mark.parametrize("gb", [1, 3])
def test_what_was_decided_before_others_claimed_is_decided_again(fleet, worker, gb):
    """Also where both would fit: only a decision can tell."""
    one, other = worker(), worker()
    name = a_name()
    pending = other.decide("req-2", gb * GB, name)
    assert one.hosts("req-1", 3 * GB, a_name()) == pending.hosts
    assert pending.book() == Lost(needs_read=False)
    (host,) = other.hosts("req-2", gb * GB, name)
    assert fleet.claims()[name] == host != pending.hosts[0]
    fleet.check()


def test_a_claim_counted_while_the_own_is_written_wins(fleet, worker, monkeypatch):
    """Also if the generation by then is the one that the write would expect."""
    one, other = worker(), worker()
    pending = other.decide("req-2", 3 * GB, a_name())
    writer = other.driver.claims.writer
    commit = writer._claim

    def late(*arguments):
        assert one.hosts("req-1", 3 * GB, a_name()) == pending.hosts
        other.manager.refresh()
        commit(*arguments)

    monkeypatch.setattr(writer, "_claim", late)
    assert pending.book() == Lost(needs_read=False)
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


@pytest.mark.parametrize("end", ["fail", "delete"])
@pytest.mark.parametrize(("who", "seconds"), [(0, 5), (1, 20)])
def test_a_claim_ends_with_its_instance(fleet, worker, clock, end, who, seconds):
    """The worker that made it closes it, another one later: the first may be dead."""
    workers = one, other = worker(), worker()
    name = a_name()
    fleet.wait_for_host(name, 3 * GB)
    (host,) = one.hosts("req-1", 3 * GB, name)
    getattr(fleet, end)(name)
    other.manager.refresh()
    for _time in range(2):
        workers[who].manager.refresh()
        assert workers[who].free_mb()[host] == 4 * GB
        clock.ahead_seconds += seconds
    assert fleet.claims() == {}


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


def test_a_retry_replaces_the_claim_of_the_instance(fleet, worker):
    one, other = worker(), worker()
    name = a_name()
    fleet.wait_for_host(name, 3 * GB)
    (first,) = one.hosts("req-1", 3 * GB, name)
    assert other.hosts("req-2", 3 * GB, name) == [first], "its own claim is not in its way"
    (second,) = other.hosts("req-3", 3 * GB, name, ignore_hosts=[first])
    assert first != second
    assert fleet.claims() == {name: second}
    one.manager.refresh()
    assert one.free_mb()[first] == 4 * GB
    assert one.free_mb()[second] == other.free_mb()[second] == GB


def test_a_worker_that_wakes_after_its_write_keeps_the_later_claim(
    fleet, worker, clock, monkeypatch
):
    """It was stopped before it knew of its own claim, which has made way for another's since."""
    one, other, name = worker(), worker(), a_name()
    fleet.wait_for_host(name, 3 * GB)
    pending = one.decide("req-1", 3 * GB, name)
    writer, found = one.driver.claims.writer, []
    write = writer._write_rows

    def late(*arguments):
        rows = write(*arguments)
        found.extend(other.hosts("req-2", 3 * GB, name, ignore_hosts=pending.hosts))
        one.manager.refresh()
        return rows

    monkeypatch.setattr(writer, "_write_rows", late)
    pending.book()
    for _time in range(3):
        clock.ahead_seconds += 5
        one.manager.refresh()
        assert one.free_mb()[found[0]] == GB
    assert sum(one.free_mb().values()) == (12 - 3) * GB
    assert fleet.claims() == {name: found[0]}


def test_a_claim_whose_end_stays_unknown_is_counted(fleet, worker, monkeypatch):
    """All claims are read while it is looked for, and then the database is away for a moment."""
    one = worker()
    for host in fleet.hosts[1:]:
        fleet.fill(host)
    one.manager.refresh()
    first = one.decide("req-1", 3 * GB, a_name())
    session, reservations = one.driver.claims.writer._session, one.manager.reservations
    run = session.run

    def broken(function):
        run(function)
        raise db_exception.DBConnectionError

    def away(*_arguments):
        reservations.reader.want_all()
        one.manager.refresh()
        raise db_exception.DBConnectionError

    with monkeypatch.context() as patch:
        patch.setattr(session, "run", broken)
        patch.setattr(claim_rows, "of_consumers", away)
        with pytest.raises(db_exception.DBConnectionError):
            first.book()
    assert one.decide("req-2", 3 * GB, a_name()).book() == Lost()
    one.manager.refresh()
    assert one.free_mb()[fleet.hosts[0]] == GB


def test_rows_have_the_time_that_schedulers_agree_on(fleet, worker, clock):
    """The machine's own clock may be set back: then nobody would see in time what was closed."""
    one, name = worker(), a_name()
    clock.ahead_seconds += 5000
    fleet.wait_for_host(name, GB)
    one.hosts("req-1", GB, name)
    one.hosts("req-2", GB, name, ignore_hosts=one.hosts("req-1", GB, name))
    with pytest.raises(errors.NoValidHost):
        one.hosts("req-3", 100 * GB, a_name())
    with fleet.database.read() as connection:
        found = connection.execute(sa.select(tables.claims.c.closed_at)).scalars()
        closed = [seconds(each) for each in found if each is not None]
    assert len(closed) == 2
    assert all(abs(each - clock()) < 60 for each in closed)


def test_the_same_request_gets_the_same_answer_from_any_worker(fleet, worker):
    one, other = worker(), worker()
    names = [a_name(), a_name()]
    first = one.select("req-1", GB, *names, return_alternates=True)
    again = other.select("req-1", GB, *names, return_alternates=True)
    assert [[each.service_host for each in many] for many in again] == [
        [each.service_host for each in many] for many in first
    ]
    assert again[0][0].limits_exact == first[0][0].limits_exact
    assert len(again[0]) > 1
    assert len(fleet.claims()) == 2


@pytest.mark.parametrize("is_known", [False, True])
def test_the_same_request_decided_by_two_workers_at_once(fleet, worker, is_known):
    """Also where the claim of the first is learnt of before the second comes to write."""
    one, other = worker(), worker()
    name = a_name()
    late, first = other.decide("req-1", GB, name), one.decide("req-1", GB, name)
    assert first.book() == Booked(first.decided.selections)
    if is_known:
        other.manager.refresh()
    assert late.book() == Lost(needs_read=False)
    assert other.hosts("req-1", GB, name) == first.hosts
    other.manager.refresh()
    assert sum(other.free_mb().values()) == 11 * GB


def test_all_instances_of_a_request_or_none(fleet, worker):
    one = worker()
    with pytest.raises(errors.NoValidHost):
        one.hosts("req-1", 3 * GB, *[a_name() for _ in range(4)])
    assert fleet.claims() == {}
    assert set(one.free_mb().values()) == {4 * GB}
    assert sorted(one.hosts("req-2", 3 * GB, *[a_name() for _ in range(3)])) == fleet.hosts


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


def test_two_workers_that_begin_to_count_at_once(fleet, worker, monkeypatch):
    read, answers = claim_rows.known_hosts, iter([{}])
    monkeypatch.setattr(
        claim_rows, "known_hosts", lambda *asked: next(answers, None) or read(*asked)
    )
    one, other = worker(), worker()
    assert next(answers, None) is None
    for number, each in enumerate((one, other, one)):
        assert len(each.hosts(f"req-{number}", GB, a_name())) == 1
    fleet.check()


def test_an_arrival_in_the_middle_of_a_read_is_not_missed(fleet, worker, clock):
    one = worker()
    name = a_name()
    fleet.wait_for_host(name, 3 * GB)
    clock.ahead_seconds += 30
    (host,) = one.hosts("req-1", 3 * GB, name)
    fleet.change(name, None, task_state=None)  # so that the next read looks at it
    moments = iter([True])

    def arrive(_connection, _cursor, statement, *_others):
        if "instances.task_state" in statement and next(moments, False):
            fleet.arrive(name, host)

    sa.event.listen(one.database.engine, "before_cursor_execute", arrive)
    for _time in range(3):
        one.manager.refresh()
        assert one.free_mb()[host] == GB
    assert not next(moments, False), "nothing arrived"


def test_a_race_lost_while_nothing_can_be_read_is_no_conflict(worker, monkeypatch, caplog):
    def fail(*_arguments, **_more):
        raise sa.exc.OperationalError("", {}, Exception("gone"))

    one = worker()
    monkeypatch.setattr(one.manager.reservations.reader, "read", fail)
    one.manager.reservations.forget(list(one.manager.table.rows))
    with pytest.raises(errors.StateUnavailable, match="claims cannot be read"):
        one.hosts("req-1", GB, a_name())
    assert "cannot be read: [database] connection: " in caplog.text


def test_a_request_of_which_a_part_is_gone_is_decided_anew(fleet, worker):
    one, two, names = worker(), worker(), [a_name(), a_name()]
    one.hosts("req-1", GB, *names)
    with fleet.database.write() as conn:
        conn.execute(tables.claims.delete().where(tables.claims.c.consumer_uuid == names[0]))
    hosts = two.hosts("req-1", GB, *names)
    assert fleet.claims() == dict(zip(names, hosts, strict=True))


def test_a_decision_that_is_held_back_closes_no_later_claim(fleet, worker):
    one, two, name = worker(), worker(), a_name()
    fleet.wait_for_host(name, GB)
    held_back = one.decide("req-1", GB, name)
    (later,) = two.hosts("req-2", GB, name, ignore_hosts=held_back.hosts)
    assert isinstance(held_back.book(), Booked)
    with fleet.database.read() as conn:
        assert {row.host for row in claim_rows.list_all(conn)} == {later, *held_back.hosts}
