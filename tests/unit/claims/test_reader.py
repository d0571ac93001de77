"""Reads of claims: which are due, and which ids are waited for."""

from __future__ import annotations

import datetime
import time

import pytest

from scheduler.claims.reader import (
    SKIPPED_AT_MOST,
    SKIPPED_SECONDS,
    ClaimReader,
    KnownIds,
    utc,
)
from scheduler.db import claims as claim_rows

LATER = SKIPPED_SECONDS + 1
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


def test_generations_of_all_hosts_are_read_once(database):
    with database.write() as connection:
        claim_rows.add(connection, KEYS)
    reader = ClaimReader(database)
    found = []
    for at in (1_000_000.0, 1_000_100.0):
        read = reader.read(at, lambda: (), {})
        reader.taken(read)
        found.append([(row.host, row.node) for row in read.hosts])
    assert found == [KEYS, []]


@pytest.mark.parametrize(
    ("notes", "newest", "skipped"),
    [
        pytest.param([], 0, (), id="none"),
        pytest.param([({1, 2, 3}, 0)], 3, (), id="one after the other"),
        pytest.param([({1}, 0), ({4}, 0)], 4, (2, 3), id="some passed over"),
        pytest.param([({1}, 0), ({4}, 0), ({2}, 1)], 4, (3,), id="one comes late"),
        pytest.param([(set(), 0)], 0, (), id="none so far"),
        pytest.param([({1}, 0), ({3}, 0), (set(), SKIPPED_SECONDS)], 3, (2,), id="may come"),
        pytest.param([({1}, 0), ({3}, 0), (set(), LATER)], 3, (), id="one never comes"),
        pytest.param([({2}, 0), ({4}, LATER)], 4, (3,), id="given up one by one"),
        pytest.param([({4}, 0), ({2}, 0), ({2, 4}, 0)], 4, (1, 3), id="met again"),
        pytest.param([({1}, 0), (set(), 0)], 1, (), id="nothing new"),
    ],
)
def test_what_is_skipped(notes, newest, skipped):
    known = KnownIds()
    for ids, now in notes:
        known.add(ids, now)
    assert (known.newest, known.skipped) == (newest, skipped)


def test_only_the_latest_of_many_are_waited_for():
    known = KnownIds()
    known.add({10 * SKIPPED_AT_MOST}, 0)
    assert known.skipped == tuple(range(9 * SKIPPED_AT_MOST, 10 * SKIPPED_AT_MOST))
    known.add({10 * SKIPPED_AT_MOST + 3}, 1)
    assert len(known.skipped) == SKIPPED_AT_MOST
    assert known.skipped[-2:] == (10 * SKIPPED_AT_MOST + 1, 10 * SKIPPED_AT_MOST + 2)
