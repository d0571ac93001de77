"""What the reads of claims find, and in which order hosts are locked."""

from __future__ import annotations

import datetime
import time

import pytest
import sqlalchemy as sa

from scheduler.claims.register import HOSTS_READ_SECONDS, Register, utc
from scheduler.db import claims as claim_rows

KEYS = [("h1", "n1"), ("h2", "n2")]


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


def test_generations_of_all_hosts_are_read_with_all_claims_now_and_then(database):
    with database.write() as connection:
        claim_rows.add(connection, KEYS)
    register = Register(database)

    def hosts_seen(at):
        register.want_all()
        look = register.look(at, lambda: (), {})
        register.taken(look)
        return [(row.host, row.node) for row in look.hosts]

    began = 1_000_000.0
    assert hosts_seen(began) == KEYS
    assert hosts_seen(began + HOSTS_READ_SECONDS / 2) == []
    assert hosts_seen(began + HOSTS_READ_SECONDS + 1) == KEYS


def test_hosts_are_locked_in_the_same_order_by_all(database):
    asked = []

    def note(_connection, _cursor, statement, *_others):
        asked.append(statement)

    sa.event.listen(database.engine, "before_cursor_execute", note)
    with database.write() as connection:
        claim_rows.add(connection, KEYS)
        asked.clear()
        assert claim_rows.lock_hosts(connection, [2, 1]) == {1: 0, 2: 0}
    assert ["ORDER BY claim_hosts.id" in each for each in asked] == [True]
