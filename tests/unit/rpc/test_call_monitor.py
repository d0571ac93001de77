"""Callers who wait for heartbeats get them in time, as long as their calls are worked on."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.rpc.call_monitor import CallHeartbeats, CallMonitor
from scheduler.rpc.connection import Deliveries
from scheduler.rpc.messages import MessageLimits
from tests.waiting import Clock, wait_until


class Call:
    """A call as the library hands it over."""

    def __init__(self, client_timeout: Any, reply_q: str | None = "reply") -> None:
        self.client_timeout = client_timeout
        self.reply_q = reply_q
        self.heartbeats = 0


class Counted(CallHeartbeats):
    """Counts them at the calls; *failures* of them cannot be sent."""

    def __init__(self, failures: int = 0) -> None:
        super().__init__(Deliveries(MessageLimits(1, 1)))
        self._failures = failures

    def send(self, incoming: Call) -> None:
        if self._failures:
            self._failures -= 1
            super().send(incoming)  # no broker was ever there
        incoming.heartbeats += 1


@pytest.mark.parametrize(
    ("client_timeout", "heartbeats"),
    [(60, 1), (4, 1), (2, 1), (62, 0), (1, 0), (0, 0), (None, 0)],
)
def test_half_of_what_the_caller_waits(client_timeout: Any, heartbeats: int) -> None:
    clock = Clock()
    monitor, call = CallMonitor(Counted(), clock), Call(client_timeout)
    monitor.watch(call)
    monitor.look()
    assert call.heartbeats == 0
    clock.now += 30
    monitor.look()
    monitor.look()
    assert call.heartbeats == heartbeats
    monitor.forget(call)


def test_no_heartbeats_for_what_is_over_or_for_nobody() -> None:
    clock = Clock()
    monitor = CallMonitor(Counted(), clock)
    over, nobody, lasting = Call(4), Call(4, reply_q=None), Call(4)
    for call in (over, nobody, lasting):
        monitor.watch(call)
    monitor.forget(over)
    for _ in range(3):
        clock.now += 2
        monitor.look()
    assert (over.heartbeats, nobody.heartbeats, lasting.heartbeats) == (0, 0, 3)
    monitor.forget(lasting)


def test_a_heartbeat_that_cannot_be_sent_is_tried_again_soon() -> None:
    clock = Clock()
    monitor, call = CallMonitor(Counted(failures=2), clock), Call(60)
    monitor.watch(call)
    clock.now += 30
    for _ in range(4):
        monitor.look()
    assert (call.heartbeats, monitor.failed) == (1, 2)
    monitor.forget(call)


def test_a_call_that_ends_during_a_look_is_watched_no_more() -> None:
    clock, ended = Clock(), Call(4)

    class Ending(Counted):
        def send(self, incoming: Call) -> None:
            monitor.forget(ended)
            super().send(incoming)

    monitor, ending = CallMonitor(Ending(), clock), Call(4)
    for call in (ending, ended):
        monitor.watch(call)
    for _ in range(2):
        clock.now += 2
        monitor.look()
    assert (ending.heartbeats, ended.heartbeats) == (2, 0)
    monitor.forget(ending)


def test_the_thread_sees_to_calls_that_come_later_and_are_due_sooner() -> None:
    monitor = CallMonitor(Counted())
    patient, hasty = Call(600), Call(2)
    monitor.watch(patient)
    monitor.watch(hasty)
    wait_until(lambda: hasty.heartbeats >= 1, 60, "a heartbeat")
    assert patient.heartbeats == 0
    monitor.forget(hasty)
    monitor.forget(patient)
