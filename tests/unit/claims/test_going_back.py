"""A database of claims that is not what it was: no host is given twice, and nothing else breaks."""

import threading
from collections import Counter

import pytest
import sqlalchemy as sa

from scheduler import errors
from scheduler.claims import recovery
from scheduler.db import claims as claim_rows
from scheduler.db.tables import claim_hosts, claims
from tests.unit.claims.fleets import GB, a_name

TABLES = (claims, claim_hosts)
#: What has the next id follow those that there are, as in a copy that was made earlier.
RESTARTS = {
    "sqlite": "UPDATE sqlite_sequence SET seq = {last} WHERE name = '{table}'",
    "mysql": "ALTER TABLE {table} AUTO_INCREMENT = {next}",
    "postgresql": "ALTER SEQUENCE {table}_id_seq RESTART WITH {next}",
}


def copied(database):
    with database.read() as conn:
        return {each: conn.execute(sa.select(each)).mappings().all() for each in TABLES}


def put_back(database, rows_of_table):
    """Have nothing but these rows in the tables named, and draw the next ids after them."""
    with database.write() as conn:
        for table, rows in rows_of_table.items():
            conn.execute(table.delete())
            if rows:
                conn.execute(table.insert(), [dict(row) for row in rows])
            last = max((row["id"] for row in rows), default=0)
            restart = RESTARTS[database.dialect_name]
            conn.exec_driver_sql(restart.format(table=table.name, last=last, next=last + 1))


def without(copy, table, index):
    rows = list(copy[table])
    del rows[index]
    return {table: rows}


#: What is found afterwards, of a copy made earlier and one of the latest state; and whether that
#: is another history of the claims.
CASES = {
    "all put back": (lambda earlier, _latest: earlier, True),
    "claims put back": (lambda earlier, _latest: {claims: earlier[claims]}, True),
    "hosts put back": (lambda earlier, _latest: {claim_hosts: earlier[claim_hosts]}, False),
    "all emptied": (lambda _earlier, _latest: dict.fromkeys(TABLES, ()), True),
    "claims emptied": (lambda _earlier, _latest: {claims: ()}, True),
    "hosts emptied": (lambda _earlier, _latest: {claim_hosts: ()}, False),
    "the newest claim lost": (lambda _earlier, latest: without(latest, claims, -1), True),
    "an open claim lost": (lambda _earlier, latest: without(latest, claims, 0), True),
    "one host lost": (lambda _earlier, latest: without(latest, claim_hosts, 0), False),
}


class Callers:
    """Ask for servers of 1 GB, and keep who got what."""

    def __init__(self, fleet):
        self.fleet = fleet
        self.given = {}

    def ask(self, *workers, **how):
        for each in workers:
            name = a_name()
            self.fleet.wait_for_host(name, GB)
            try:
                [self.given[name]] = each.hosts(f"req-{name}", GB, name, **how)
            except errors.NoValidHost:
                self.fleet.fail(name)


@pytest.mark.parametrize("case", CASES)
def test_no_host_is_given_twice(fleet, worker, clock, caplog, case):
    found, is_other = CASES[case]
    one, other, callers = worker(), worker(), Callers(fleet)
    callers.ask(one, other)
    earlier = copied(fleet.database)
    callers.ask(one, other, one, other)
    put_back(fleet.database, found(earlier, copied(fleet.database)))
    clock.pass_by(6)  # all claims are read now and then
    for each in (one, other):
        each.manager.read_beside()
        each.manager.read_beside()
    late = worker()
    callers.ask(*(late, one, other) * 3)
    assert Counter(callers.given.values()) == dict.fromkeys(fleet.hosts, 4)
    assert fleet.claims() == callers.given
    noticed = [each.manager.reservations.histories_lost for each in (one, other, late)]
    assert (max(noticed), noticed[2]) == (is_other, 0)
    assert caplog.text.count("not those that were read before") == sum(noticed)


def test_who_did_not_see_it_claims_nothing_for_a_while_either(fleet, worker, clock):
    one, other, callers = worker(), worker(), Callers(fleet)
    earlier = copied(fleet.database)
    callers.ask(one)
    put_back(fleet.database, earlier)
    one.manager.refresh()
    one.manager.refresh()
    pending = other.decide("req-1", GB, a_name())
    other.manager.refresh()
    before = clock()
    callers.ask(other)
    assert clock() - before >= one.manager.reservations.grace_seconds - 1
    assert pending.book().outcome == "lost"
    clock.pass_by(10)
    other.manager.refresh()
    other.manager.refresh()
    with fleet.database.read() as conn:
        marks = conn.execute(sa.select(claims).where(claims.c.host == claim_rows.NO_HOST)).all()
    assert [each.closed_at is not None for each in marks] == [True]
    assert fleet.claims() == callers.given


@pytest.mark.parametrize("is_own", [False, True])
def test_a_claim_with_the_id_of_a_lost_one_does_not_hide_the_loss(fleet, worker, clock, is_own):
    one, other, callers, name = worker(), worker(), Callers(fleet), a_name()
    callers.ask(one, other)
    earlier = copied(fleet.database)
    if not is_own:
        callers.ask(other)
    one.manager.refresh()  # one knows all claims
    fleet.wait_for_host(name, GB)
    pending = one.decide("req-1", GB, name)
    if is_own:
        callers.ask(one, ignore_hosts=pending.hosts)
    put_back(fleet.database, earlier)
    [callers.given[name]] = [each[0].service_host for each in pending.book().selections]
    for _ in range(2):
        one.manager.refresh()
        other.manager.refresh()
    assert one.manager.reservations.histories_lost == 1
    clock.pass_by(10)
    for each in (one, other) * 2:
        each.manager.refresh()
    assert fleet.claims() == callers.given
    free = {host: 4 * GB - GB * count for host, count in Counter(callers.given.values()).items()}
    assert one.free_mb() == other.free_mb() == free


@pytest.mark.parametrize("reads_all", [False, True])
def test_others_that_took_the_ids_of_lost_claims_do_not_hide_the_loss(
    fleet, worker, clock, reads_all
):
    one, other, callers = worker(), worker(), Callers(fleet)
    earlier = copied(fleet.database)
    callers.ask(one)
    put_back(fleet.database, earlier)
    callers.ask(other, other)
    if reads_all:
        one.manager.reservations.reader.want_all()
    for _ in range(2):
        one.manager.refresh()
        other.manager.refresh()
    assert one.manager.reservations.histories_lost == 1
    assert fleet.claims() == callers.given


def test_a_claim_whose_end_is_lost_ends_with_the_read_that_finds_it(fleet, worker):
    """The row of its failed instance was read long before."""
    one, name = worker(), a_name()
    fleet.wait_for_host(name, 3 * GB)
    (host,) = one.hosts("req-1", 3 * GB, name)
    fleet.fail(name)
    set_closed_at(fleet, fleet.now())
    for _read in range(2):
        one.manager.refresh()
    set_closed_at(fleet, None)
    one.manager.reservations.reader.want_all()
    one.manager.refresh()
    assert one.free_mb()[host] == 4 * GB


def set_closed_at(fleet, when):
    with fleet.database.write() as connection:
        connection.execute(claims.update().values(closed_at=when))


def test_nobody_is_refused_while_claims_are_written_again(fleet, worker, clock):
    one, earlier = worker(), copied(fleet.database)
    Callers(fleet).ask(one)
    put_back(fleet.database, earlier)
    one.manager.refresh()
    one.manager.refresh()
    before = clock()
    with pytest.raises(errors.NoValidHost):
        one.hosts("req-1", 99 * GB, a_name())
    assert clock() - before >= one.manager.reservations.grace_seconds - 1


def test_nobody_closes_a_claim_for_one_that_had_its_id(fleet, worker, clock):
    one, other, over, callers = worker(), worker(), a_name(), Callers(fleet)
    earlier = copied(fleet.database)
    fleet.wait_for_host(over, GB)
    one.hosts("req-1", GB, over)
    fleet.delete(over)
    one.manager.refresh()
    put_back(fleet.database, earlier)
    callers.ask(other)
    clock.pass_by(3)  # it is to be closed by now
    one.manager.refresh()
    assert fleet.claims() == callers.given


def test_an_answer_that_is_written_again_is_given_again(fleet, worker):
    one, other, name = worker(), worker(), a_name()
    earlier = copied(fleet.database)
    answer = one.hosts("req-1", GB, name)
    put_back(fleet.database, earlier)
    one.manager.refresh()
    one.manager.refresh()
    assert other.hosts("req-1", GB, name) == answer


def test_what_is_lost_again_is_written_again_again(fleet, worker, monkeypatch):
    """The database goes back a second time before anybody has read what was written."""
    one, callers, earlier = worker(), Callers(fleet), copied(fleet.database)
    callers.ask(one)
    put_back(fleet.database, earlier)
    one.manager.refresh()
    write, times = recovery.write_again, []

    def lost(*arguments):
        there = write(*arguments)
        if not times:
            put_back(fleet.database, earlier)
        times.append(there)
        return there

    monkeypatch.setattr(recovery, "write_again", lost)
    for _ in range(3):
        one.manager.refresh()
    assert len(times) == 2
    assert fleet.claims() == callers.given


def written_and_stopped(worker, pending, monkeypatch):
    """Have *pending* written by a thread that does not hear of it; call the result to let it."""
    writer = worker.driver.claims.writer
    is_written, goes_on, write = threading.Event(), threading.Event(), writer._write_rows

    def late(*arguments):
        rows = write(*arguments)
        is_written.set()
        goes_on.wait()
        return rows

    def hear(result=None):
        goes_on.set()
        booking.join()
        return result

    monkeypatch.setattr(writer, "_write_rows", late)
    booking = threading.Thread(target=pending.book)
    booking.start()
    is_written.wait()
    return hear


@pytest.mark.parametrize("when", ["before", "write_again", "read"])
def test_a_write_is_heard_of_while_others_are_written_again(
    fleet, worker, clock, monkeypatch, when
):
    """What is written again gets the ids of the claims that are lost."""
    one, callers, name, earlier = worker(), Callers(fleet), a_name(), copied(fleet.database)
    callers.ask(one)
    one.manager.refresh()
    fleet.wait_for_host(name, GB)
    pending = one.decide("req-1", GB, name)
    hear = written_and_stopped(one, pending, monkeypatch)
    put_back(fleet.database, earlier)
    one.manager.refresh()
    if when == "before":
        hear()
    else:
        room = recovery if when == "write_again" else one.manager.reservations.reader
        step = getattr(room, when)
        monkeypatch.setattr(room, when, lambda *arguments: hear(step(*arguments)))
    callers.given[name] = pending.hosts[0]
    for _ in range(4):
        one.manager.refresh()
        clock.pass_by(6)
    assert fleet.claims() == callers.given
    free = Counter(callers.given.values())
    assert one.free_mb() == {host: (4 - free[host]) * GB for host in fleet.hosts}


def test_who_repeats_an_answer_writes_it_again_too(fleet, worker):
    """The worker that claimed is gone."""
    one, two, name, earlier = worker(), worker(), a_name(), copied(fleet.database)
    fleet.wait_for_host(name, GB)
    hosts = one.hosts("req-1", GB, name)
    assert two.hosts("req-1", GB, name) == hosts
    put_back(fleet.database, earlier)
    for _ in range(2):
        two.manager.refresh()
    assert fleet.claims() == {name: hosts[0]}


def test_who_repeats_an_answer_that_is_over_keeps_nothing(fleet, worker):
    one, two, name = worker(), worker(), a_name()
    fleet.wait_for_host(name, GB)
    hosts = one.hosts("req-1", GB, name)
    two.manager.refresh()
    fleet.arrive(name, hosts[0])
    two.manager.refresh()
    assert two.hosts("req-1", GB, name) == hosts
    two.manager.clock.pass_by(2)
    assert not two.manager.reservations.needs_read()


def test_what_shows_elsewhere_or_is_over_is_not_written_again(fleet, worker):
    one, callers = worker(), Callers(fleet)
    callers.ask(one, one, one)
    arrived, failed, waiting = callers.given
    fleet.arrive(arrived, callers.given[arrived])
    fleet.fail(failed)
    one.manager.refresh()
    put_back(fleet.database, {claims: ()})
    one.manager.refresh()
    one.manager.refresh()
    assert list(fleet.claims()) == [waiting]
    assert sum(one.free_mb().values()) == 10 * GB


def test_what_is_written_again_closes_no_later_claim(fleet, worker, clock, monkeypatch):
    """Each of two workers knows the claim of another request for the instance."""
    one, other, name, earlier = worker(), worker(), a_name(), copied(fleet.database)
    fleet.wait_for_host(name, GB)
    (first,) = one.hosts("req-1", GB, name)
    clock.pass_by(2)
    (later,) = other.hosts("req-2", GB, name, ignore_hosts=[first])
    put_back(fleet.database, earlier)
    for each in (one, other):
        each.manager.refresh()
    begin, reads = claim_rows.begin, iter([other.manager.refresh])

    def late(database, keys):
        if list(keys) == [(first, first)]:  # one has seen that its claim is missing
            for read in reads:
                read()
        return begin(database, keys)

    monkeypatch.setattr(claim_rows, "begin", late)
    for each in (one, other) * 2:
        each.manager.refresh()
    assert not list(reads)
    with fleet.database.read() as conn:
        assert later in [row.host for row in claim_rows.list_all(conn)]


def test_a_claim_in_place_of_one_that_is_set_aside_is_written_again(fleet, worker, clock):
    """It is of the same request, of which another claim is purged."""
    one, names = worker(), [a_name(), a_name()]
    for name in names:
        fleet.wait_for_host(name, GB)
    fleet.arrive(names[1], one.hosts("req-1", GB, *names)[1])
    one.manager.refresh()
    Callers(fleet).ask(one)  # the newest claim of all is not purged
    for _minute in range(9):
        clock.pass_by(60)
        one.manager.refresh()
    given = dict(zip(names, one.hosts("req-1", GB, *names), strict=True))
    one.manager.refresh()
    put_back(fleet.database, {claims: ()})
    for _read in range(2):
        one.manager.refresh()
    assert fleet.claims().items() >= given.items()


@pytest.mark.parametrize("reads", [False, True], ids=["slept", "read, and nothing came for long"])
def test_purged_claims_are_taken_for_no_other_history(fleet, worker, clock, reads):
    one, other, callers = worker(), worker(), Callers(fleet)
    callers.ask(one)
    [name] = callers.given
    fleet.delete(name)
    for minute in range(8):
        clock.pass_by(60)
        if reads:
            one.manager.refresh()
        if not reads or minute == 7:
            callers.ask(other)
        other.manager.refresh()
    clock.pass_by(60)
    other.manager.refresh()
    callers.ask(one)
    assert one.manager.reservations.histories_lost == other.manager.reservations.histories_lost == 0
    with fleet.database.read() as conn:
        assert bool(claim_rows.of_consumers(conn, [name])) is reads, "kept for one, or purged"
