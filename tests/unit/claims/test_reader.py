"""A read asks for what has changed of the claims, and misses nothing for all that."""

import contextlib
import datetime
import time

import pytest
import sqlalchemy as sa

from scheduler.claims.reader import (
    ALL_READ_SECONDS,
    LATE_SECONDS,
    SKIPPED_AT_MOST,
    ClaimReader,
    utc,
)
from scheduler.db import claims as claim_rows
from scheduler.db import tables
from scheduler.db.database import Database
from tests.unit.claims.fleets import GB, a_name

ALL = "WHERE claims.closed_at IS NULL"


@contextlib.contextmanager
def statements(worker):
    """What *worker* asks its database."""
    asked = []

    def note(_connection, _cursor, statement, *_others):
        asked.append(statement)

    sa.event.listen(worker.driver.claims.database.engine, "before_cursor_execute", note)
    yield asked
    sa.event.remove(worker.driver.claims.database.engine, "before_cursor_execute", note)


def reads_all(worker):
    """Whether a read asks for all claims."""
    with statements(worker) as asked:
        worker.manager.refresh()
    return any(ALL in each for each in asked)


def a_claim(fleet, host, number, generation, ram_mb):
    """A claim with that id, as somebody else writes it."""
    with fleet.database.write() as conn:
        hosts = tables.claim_hosts
        conn.execute(hosts.update().where(hosts.c.host == host).values(generation=generation))
        values = claim_rows.refusal(a_name(), "req-x", "{}", fleet.now())
        values |= {
            "id": number,
            "host": host,
            "node": host,
            "generation": generation,
            "previous": generation - 1,
            "memory_mb": ram_mb,
            "expires_at": fleet.now() + datetime.timedelta(hours=1),
            "closed_at": None,
        }
        claim_rows.insert(conn, [values])


def generation_known(worker):
    """Up to which generation the claims on h1 are counted; None if that is not known."""
    counted = worker.manager.reservations.counted.get(("h1", "h1"))
    return counted and counted.generation


def close(fleet, number, ago_seconds=0.0):
    """Close the claim *number*; it takes so long to be written."""
    with fleet.database.write() as conn:
        [row] = claim_rows.by_ids(conn, [number])
        at = fleet.now() - datetime.timedelta(seconds=ago_seconds)
        claim_rows.close(conn, {number: row.generation}, at)


@pytest.fixture
def watching(fleet, worker):
    """A worker that knows of one claim, number 100 on h1 with 1 GB, and of every host."""
    one = worker()
    one.driver.claims.prepare()
    a_claim(fleet, "h1", 100, 1, GB)
    one = worker()
    assert one.free_mb()["h1"] == 3 * GB
    return one


def test_all_open_claims_are_read_now_and_then(watching, clock):
    assert [reads_all(watching) for _time in range(3)] == [False, False, False]
    clock.ahead_seconds += ALL_READ_SECONDS
    assert [reads_all(watching) for _time in range(2)] == [True, False]


@pytest.mark.parametrize("numbers", [(101, 102), (102, 101), (150, 120), (9000, 8500)])
def test_a_claim_is_seen_at_once_whichever_is_committed_first(fleet, watching, numbers):
    for generation, number in enumerate(numbers, 2):
        a_claim(fleet, "h1", number, generation, GB)
        assert not reads_all(watching)
        assert watching.free_mb()["h1"] == (4 - generation) * GB
        assert generation_known(watching) == generation


@pytest.mark.parametrize("ago_seconds", [0, LATE_SECONDS - 1])
def test_the_end_of_a_claim_is_seen_at_once(fleet, watching, ago_seconds):
    close(fleet, 100, ago_seconds)
    assert not reads_all(watching)
    assert watching.free_mb()["h1"] == 4 * GB


def test_the_end_of_a_claim_is_seen_after_a_pause(fleet, watching, clock):
    clock.ahead_seconds += ALL_READ_SECONDS - 0.5
    close(fleet, 100, ALL_READ_SECONDS - 1)
    assert not reads_all(watching)
    assert watching.free_mb()["h1"] == 4 * GB


def test_an_end_that_is_told_too_late_is_seen_with_all_claims(fleet, watching, clock):
    a_claim(fleet, "h1", 101, 2, GB)
    watching.manager.refresh()
    close(fleet, 100, 60)
    watching.manager.refresh()
    assert watching.free_mb()["h1"] == 2 * GB
    clock.ahead_seconds += ALL_READ_SECONDS
    watching.manager.refresh()
    assert watching.free_mb()["h1"] == 3 * GB


def test_nothing_is_lost_with_a_read_that_fails(fleet, watching, monkeypatch):
    a_claim(fleet, "h1", 101, 2, GB)
    close(fleet, 100)

    def fail(*_arguments, **_more):
        raise sa.exc.OperationalError("", {}, Exception("gone"))

    with monkeypatch.context() as patched:
        patched.setattr(watching.manager._reader, "read", fail)
        watching.manager.refresh()
    a_claim(fleet, "h1", 102, 3, GB)
    watching.manager.refresh()
    assert watching.free_mb()["h1"] == 2 * GB


def test_a_claim_that_came_and_went_leaves_nothing_but_its_generation(fleet, watching):
    a_claim(fleet, "h1", 101, 2, GB)
    close(fleet, 101)
    assert not reads_all(watching)
    assert watching.free_mb()["h1"] == 3 * GB
    assert generation_known(watching) == 2


def test_a_claim_whose_forerunner_was_never_seen_calls_for_a_read_of_all(fleet, watching):
    a_claim(fleet, "h1", 101, 3, GB)
    assert not reads_all(watching)
    assert generation_known(watching) is None
    assert reads_all(watching)
    assert generation_known(watching) == 3
    assert watching.free_mb()["h1"] == 2 * GB


@pytest.mark.usefixtures("watching")
def test_claims_that_have_to_be_there_are_told_from_others(fleet):
    """However many: there are thousands where reads are rare."""
    several = [(number, number) for number in range(101, 3101)]
    with fleet.database.read() as connection:
        assert claim_rows.open_ids(connection, [(100, 1)]) == (True, {100})
        assert claim_rows.open_ids(connection, [(100, 2)]) == (False, {100})
        assert claim_rows.open_ids(connection, several) == (False, {100})


@pytest.fixture
def tokyo(monkeypatch):
    """The zone of this process, far from UTC."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("tokyo")
def test_times_are_in_utc_wherever_the_worker_runs():
    assert utc(86400.9) == datetime.datetime(1970, 1, 2)


def test_only_the_latest_of_many_are_waited_for():
    known = ClaimReader(Database("sqlite://"))
    known.know([(10 * SKIPPED_AT_MOST, 1)])
    assert known.skipped == set(range(9 * SKIPPED_AT_MOST, 10 * SKIPPED_AT_MOST))


def test_a_host_is_renamed_by_a_space(fleet, worker):
    """To the unique index of MySQL and MariaDB that is the name that it has had."""
    assert worker().hosts("req-1", 4 * GB, a_name()) == ["h1"]
    with fleet.database.write() as conn:
        for table in (tables.compute_nodes, tables.services):
            new = {name: "h1 " for name in ("host", "hypervisor_hostname") if name in table.c}
            conn.execute(table.update().where(table.c.host == "h1").values(**new))
    several = worker().hosts("req-2", 4 * GB, *(a_name() for _host in fleet.hosts))
    assert sorted(several) == ["h1 ", "h2", "h3"]


def test_a_claim_that_was_closed_before_it_was_read_counts_until_the_next_reports(
    fleet, worker, clock, monkeypatch
):
    """Though the next read asks for what was closed of late alone."""
    one, two, name = worker(), worker(), a_name()
    fleet.wait_for_host(name, GB)
    for request_id in ("req-1", "req-2"):
        two.hosts(request_id, GB, name)
    clock.ahead_seconds += 20
    begin = claim_rows.begin

    def count_the_news_first(*arguments):
        monkeypatch.setattr(claim_rows, "begin", begin)
        one.driver.claims.read_new()
        return begin(*arguments)

    monkeypatch.setattr(claim_rows, "begin", count_the_news_first)
    one.driver.claims.prepare()
    for _time in range(2):
        one.manager.refresh()
    two.manager.refresh()
    assert one.free_mb() == two.free_mb()
    assert sum(one.free_mb().values()) == len(fleet.hosts) * fleet.ram_mb - GB


def test_a_claim_that_others_replace_while_its_worker_writes_it_does_not_count(
    fleet, worker, clock, monkeypatch
):
    one, two, name = worker(), worker(), a_name()
    fleet.wait_for_host(name, GB)
    written = one.manager.reservations.written
    one.manager.refresh()

    def late(*arguments):
        two.hosts("req-2", GB, name)
        clock.ahead_seconds += LATE_SECONDS + 1
        one.manager.refresh()
        written(*arguments)

    monkeypatch.setattr(one.manager.reservations, "written", late)
    one.hosts("req-1", GB, name)
    one.manager.refresh()
    assert sum(one.free_mb().values()) == len(fleet.hosts) * fleet.ram_mb - GB
