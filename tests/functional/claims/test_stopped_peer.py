"""A scheduler that is stopped, or cut off, inside a transaction: the others go on."""

import contextlib
import multiprocessing
import os
import random
import signal
import time
import uuid

import pytest
import sqlalchemy as sa
from oslo_db import exception as db_exception

from scheduler.claims import loading
from scheduler.db import claims as claim_rows
from scheduler.db import rows, tables
from scheduler.db.database import Database
from scheduler.db.sessions import WriteSession
from tests.builders import a_conf
from tests.unit.claims.fleets import GB, a_name
from tests.waiting import wait_until

#: Between the limit for idle transactions, 3 s, and what a caller would not wait for.
MOST_SECONDS = 30
STOPS = 40
#: Nearly the limit for a lock.
LOCK_SECONDS = 1.8


@pytest.fixture
def stopped_on(fleet):
    """A scheduler that does no more once it has claimed on a host, and has not committed."""
    peers = []

    def stop(host):
        connection = loading.claims_database(a_conf(), fleet.database).connect()
        peers.append(connection)
        hosts = tables.claim_hosts
        moved = hosts.update().where(hosts.c.host == host)
        connection.execute(moved.values(generation=hosts.c.generation + 1))
        return connection

    yield stop
    for each in peers:
        each.invalidate()
        each.close()


def test_others_choose_other_hosts_and_have_that_one_back_soon(fleet, worker, stopped_on):
    one = worker()
    [host] = one.hosts("req-1", GB, a_name())
    peer = stopped_on(host)
    began = time.monotonic()
    for number in range(2, 8):
        assert len(one.hosts(f"req-{number}", GB, a_name())) == 1
    assert time.monotonic() - began < MOST_SECONDS
    fleet.check()
    assert len(one.hosts("req-all", GB, *(a_name() for _number in range(5)))) == 5, "every host"
    fleet.check()
    with pytest.raises(db_exception.DBConnectionError):
        peer.execute(sa.text("SELECT 1"))


def test_a_host_is_not_chosen_while_its_lock_is_waited_for_in_vain(fleet, worker, stopped_on):
    """Not even refused, where it is the only one: the request waits for the server's limit."""
    one = worker()
    chosen = {one.hosts(f"req-{number}", 3 * GB, a_name())[0] for number in range(2)}
    [last] = {"h1", "h2", "h3"} - chosen
    stopped_on(last)
    assert one.hosts("req-last", 3 * GB, a_name()) == [last]
    fleet.check()


@pytest.mark.parametrize("claims", [True, False])
def test_limits_are_set_by_the_names_of_the_server(database, claims):
    used = loading.claims_database(a_conf(), database) if claims else database
    with used.read() as connection:
        if used.dialect_name == "postgresql":
            found = [
                connection.exec_driver_sql(f"SHOW {name}").scalar()
                for name in ("idle_in_transaction_session_timeout", "lock_timeout")
            ]
            assert found == (["3s", "2s"] if claims else ["1min", "1min"])
        else:
            names = "@@idle_transaction_timeout, @@innodb_lock_wait_timeout"
            found = connection.exec_driver_sql(f"SELECT {names}").one()
            assert found == ((3, 2) if claims else (60, 60))


def claim_for_ever(url):
    """Claim on one host again and again."""
    database = Database(url)
    session = WriteSession(database)
    while True:
        [host] = claim_rows.known_hosts(database, [("h1", "h1")]).values()
        now = rows.utcnow()
        values = claim_rows.refusal(str(uuid.uuid4()), "req-x", "{}", now)
        move = claim_rows.Move(host.id, host.generation, claim_rows.new_generation())
        with contextlib.suppress(claim_rows.Moved):
            session.run(lambda conn: claim_rows.claim(conn, [move], [values], now))  # noqa: B023


@pytest.fixture
def busy_peer(fleet):
    """The process id of a scheduler that claims on the host h1 all the time."""
    claim_rows.begin(fleet.database, [("h1", "h1")])
    url = fleet.database.url.render_as_string(hide_password=False)
    peer = multiprocessing.get_context("spawn").Process(target=claim_for_ever, args=(url,))
    peer.start()
    yield peer.pid
    peer.kill()
    peer.join()


def test_a_process_that_is_stopped_at_any_moment_of_a_claim_blocks_nobody(fleet, worker, busy_peer):
    """It holds no lock while it does nothing: hardly ever does one wait as for a lock, 2 s."""
    one, waits = worker(), 0

    def generation():
        [host] = claim_rows.known_hosts(fleet.database, [("h1", "h1")]).values()
        return host.generation

    before = generation()
    wait_until(lambda: generation() != before, describe="the peer claims")
    for number in range(STOPS):
        time.sleep(random.uniform(0, 0.02))
        os.kill(busy_peer, signal.SIGSTOP)
        began = time.monotonic()
        assert one.hosts(f"req-{number}", 1, a_name(), ignore_hosts=["h2", "h3"]) == ["h1"]
        waits += time.monotonic() - began > LOCK_SECONDS
        os.kill(busy_peer, signal.SIGCONT)
    assert waits <= STOPS // 4, "a busy machine is slow now and then"
    fleet.check()
