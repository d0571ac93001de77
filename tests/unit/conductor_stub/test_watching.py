"""Waiting, with a clock that only the pauses move."""

from __future__ import annotations

import itertools

import pytest

from conductor_stub import servers
from conductor_stub.servers import Server, Watch
from scheduler.db import rows, services
from tests.unit.conductor_stub import builders


def server(state="building", attempts=0, host=None):
    return Server(builders.instance(vm_state=state, host=host), attempts, None)


@pytest.mark.parametrize(
    ("done_at", "timeout", "in_time", "readings"),
    [
        pytest.param(1, 10, True, 1, id="at once"),
        pytest.param(3, 10, True, 3, id="later"),
        pytest.param(100, 1, False, 5, id="never"),
        pytest.param(1, 0, True, 1, id="no time, but it is done"),
    ],
)
def test_waiting_ends_when_it_is_done_or_the_time_is_over(done_at, timeout, in_time, readings):
    now, count, shown = [100.0], itertools.count(1), []

    def pause(seconds):
        now[0] += seconds

    watch = Watch(None, clock=lambda: now[0], pause=pause)
    seen = watch.until(lambda: next(count), lambda seen: seen >= done_at, timeout, shown.append)
    assert seen == (readings, in_time)
    assert shown == list(range(1, readings + 1))


@pytest.mark.parametrize(
    ("seen", "wanted", "has_conductor", "expected"),
    [
        ([server()], 1, False, "no conductor is running, none has taken 1 server"),
        ([server(), server()], 2, True, "no conductor has taken 2 servers"),
        (
            [server(attempts=1, host="b"), server(attempts=2, host="a"), server("active", 1, "c")],
            3,
            True,
            "no compute host (a, b) has finished building 2 servers",
        ),
        (
            [server(attempts=1)],
            2,
            True,
            "no compute host has finished building 1 server; 1 server deleted meanwhile",
        ),
    ],
)
def test_a_timeout_names_who_was_not_heard_of(seen, wanted, has_conductor, expected):
    text = servers.unheard_of(seen, wanted, 5.0, has_conductor)
    assert text == f"not within 5 seconds: {expected}"


def test_a_conductor_lives_while_its_heart_beats(database):
    assert not Watch(database).has_living_conductor(60)
    with database.write() as conn:
        row = services.get_or_create(conn, "ctl", "nova-conductor", "conductor", 74)
        services.heartbeat(conn, row.id, 1, rows.utcnow())
    assert Watch(database).has_living_conductor(60)


def test_the_summary_counts():
    seen = [server("active"), server("error"), server("active"), server()]
    assert servers.summary(seen, 5) == "2 of 5 active, 1 in error"
