"""Waiting for servers, and what is said of those that do not come."""

from __future__ import annotations

import pytest

from conductor_stub import servers
from conductor_stub.servers import Server
from scheduler.db import instances
from tests.unit.conductor_stub import builders


def server(state="building", attempts=0, host=None):
    return Server(builders.instance(vm_state=state, host=host), attempts, None)


@pytest.mark.parametrize(("timeout", "in_time"), [(10, True), (0, False)])
def test_waiting_ends_when_it_is_done_or_the_time_is_over(database, timeout, in_time):
    made, shown = builders.instance(), []
    with database.write() as conn:
        instances.create(conn, made)

    def show(seen):
        shown.append(seen)
        with database.write() as conn:
            instances.update(conn, made.uuid, vm_state="active", task_state=None)

    (seen,), ended = servers.watch(
        database, [made.uuid], lambda seen: seen[0].is_active, timeout, show
    )
    assert (seen.is_active, ended, len(shown)) == (in_time, in_time, 1 + in_time)


@pytest.mark.parametrize(
    ("seen", "wanted", "expected"),
    [
        ([server(), server()], 2, "no conductor has taken 2 servers"),
        (
            [server(attempts=1, host="b"), server(attempts=2, host="a"), server("active", 1, "c")],
            3,
            "no compute host (a, b) has finished building 2 servers",
        ),
        (
            [server(attempts=1)],
            2,
            "no compute host has finished building 1 server; 1 server deleted meanwhile",
        ),
    ],
)
def test_a_timeout_names_who_was_not_heard_of(seen, wanted, expected):
    text = servers.unheard_of(seen, wanted, 5.0)
    assert text == f"not within 5 seconds: {expected}"


def test_the_summary_counts():
    seen = [server("active"), server("error"), server("active"), server()]
    assert servers.summary(seen, 5) == "2 of 5 active, 1 in error"
