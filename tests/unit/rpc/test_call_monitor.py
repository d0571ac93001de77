"""Callers who wait for signs of life get them in time, as long as their calls are worked on."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.rpc.call_monitor import CallMonitor
from tests.waiting import wait_until


class Clock:
    """Stands still until it is moved."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Call:
    """A call as the library hands it over."""

    def __init__(self, client_timeout: Any, *, is_gone: bool = False) -> None:
        self.client_timeout = client_timeout
        self.message = {"method": "select_destinations"}
        self.signs = 0
        self._is_gone = is_gone

    def heartbeat(self) -> None:
        self.signs += 1
        if self._is_gone:
            raise RuntimeError("no such queue")


@pytest.mark.parametrize(
    ("client_timeout", "signs"),
    [(60, 1), ("60", 1), (4, 1), (62, 0), (1, 0), (0, 0), (None, 0), ("soon", 0), ([4], 0)],
)
def test_signs_after_half_of_what_the_caller_waits(client_timeout: Any, signs: int) -> None:
    clock = Clock()
    monitor, call = CallMonitor(clock), Call(client_timeout)
    monitor.watch(call)
    monitor.look()
    assert call.signs == 0
    clock.now += 30
    monitor.look()
    monitor.look()
    assert call.signs == signs
    monitor.forget(call)


def test_no_signs_for_what_is_over_or_for_nobody() -> None:
    clock = Clock()
    monitor = CallMonitor(clock)
    over, gone, lasting = Call(4), Call(4, is_gone=True), Call(4)
    for call in (over, gone, lasting):
        monitor.watch(call)
    monitor.forget(over)
    for _ in range(3):
        clock.now += 2
        monitor.look()
    assert (over.signs, gone.signs, lasting.signs) == (0, 1, 3)
    monitor.forget(lasting)


def test_a_call_that_ends_during_a_look_is_watched_no_more() -> None:
    clock = Clock()
    monitor, ending, ended = CallMonitor(clock), Call(4), Call(4)
    ending.heartbeat = lambda: monitor.forget(ended)  # type: ignore[method-assign]
    for call in (ending, ended):
        monitor.watch(call)
    for _ in range(2):
        clock.now += 2
        monitor.look()
    assert ended.signs == 0
    monitor.forget(ending)


def test_the_thread_sees_to_calls_that_come_later_and_are_due_sooner() -> None:
    monitor = CallMonitor()
    patient, hasty = Call(600), Call(2)
    monitor.watch(patient)
    monitor.watch(hasty)
    wait_until(lambda: hasty.signs >= 1, 60, "a sign of life")
    assert patient.signs == 0
    monitor.forget(hasty)
    monitor.forget(patient)
