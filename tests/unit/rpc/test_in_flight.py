"""Requests that move, wait their turn, or are stuck; heartbeats to callers who wait for them."""

import pytest

from scheduler.rpc.in_flight import CallMonitor, InFlightRequests
from tests.waiting import Clock, wait_until

LIMIT_SECONDS = 10.0


class Story:
    """Requests by name, on a clock that is told."""

    def __init__(self):
        self.now = 100.0
        self.in_flight = InFlightRequests(lambda: self.now)
        self._open = {}

    def begin(self, name, method="select_destinations"):
        self._open[name] = self.in_flight.request(method)
        self._open[name].__enter__()

    def end(self, name):
        self._open.pop(name).__exit__(None, None, None)

    def play(self, steps):
        """``+a`` begins a, ``-a`` ends it, numbers are seconds."""
        for step in steps.split():
            if step[0] == "+":
                name, _, method = step[1:].partition(":")
                self.begin(name, method or "select_destinations")
            elif step[0] == "-":
                self.end(step[1:])
            else:
                self.now += float(step)


@pytest.mark.parametrize(
    ("steps", "seconds"),
    [
        pytest.param("100", None, id="nothing in hand"),
        pytest.param("+a 9", None, id="not for long"),
        pytest.param("+a 11", 11, id="nothing moves"),
        pytest.param("+a 11 -a", None, id="ended at last"),
        pytest.param("100 +a 9", None, id="idle before"),
        pytest.param("+a 6 +b 6", 12, id="arrivals are no progress"),
        pytest.param("+a 2 +b:ping 9 -b 2", None, id="waits while another computes"),
        pytest.param("+a 2 +b 9 -b 2", 13, id="overtaken by a later one"),
        pytest.param("+b 2 +a 9 -b 2", None, id="an earlier one took long"),
    ],
)
def test_stuck_is_who_does_not_move(steps, seconds):
    story = Story()
    story.play(steps)
    assert story.in_flight.stuck_for(LIMIT_SECONDS) == seconds


def test_a_request_that_fails_is_in_hand_no_more():
    in_flight = InFlightRequests()
    with pytest.raises(ValueError), in_flight.request("select_destinations"):
        raise ValueError
    assert in_flight.in_hand == 0


# --- heartbeats ------------------------------------------------------------------------------


class Call:
    """A call as the library hands it over; so many *failures* of heartbeats cannot be sent."""

    def __init__(self, client_timeout, failures=0):
        self.client_timeout = client_timeout
        self.heartbeats = 0
        self.failures = failures

    def heartbeat(self):
        if self.failures:
            self.failures -= 1
            raise ConnectionError("no broker")
        self.heartbeats += 1


def a_monitor():
    clock = Clock()
    return CallMonitor(clock), clock


@pytest.mark.parametrize(
    ("client_timeout", "heartbeats"), [(60, 1), (4, 1), (2, 1), (62, 0), (1, 0), (0, 0), (None, 0)]
)
def test_half_of_what_the_caller_waits(client_timeout, heartbeats):
    monitor, clock = a_monitor()
    call = Call(client_timeout)
    monitor.watch(call)
    monitor.look()
    assert call.heartbeats == 0
    clock.now += 30
    monitor.look()
    monitor.look()
    assert call.heartbeats == heartbeats
    monitor.forget(call)


def test_a_heartbeat_that_cannot_be_sent_is_tried_again_soon():
    monitor, clock = a_monitor()
    call = Call(60, failures=2)
    monitor.watch(call)
    clock.now += 30
    for _ in range(4):
        monitor.look()
    assert (call.heartbeats, monitor.failed) == (1, 2)
    monitor.forget(call)


def test_a_call_that_ends_during_a_look_is_watched_no_more():
    monitor, clock = a_monitor()
    ended = Call(4)

    class Ending(Call):
        def heartbeat(self):
            monitor.forget(ended)
            super().heartbeat()

    ending = Ending(4)
    for call in (ending, ended):
        monitor.watch(call)
    for _ in range(2):
        clock.now += 2
        monitor.look()
    assert (ending.heartbeats, ended.heartbeats) == (2, 0)
    monitor.forget(ending)


def test_the_thread_sees_to_calls_that_come_later_and_are_due_sooner():
    monitor, clock = a_monitor()
    patient, hasty = Call(600), Call(2)
    monitor.watch(patient)
    monitor.watch(hasty)
    clock.now += 1
    wait_until(lambda: hasty.heartbeats >= 1, 60, "a heartbeat")
    assert patient.heartbeats == 0
    monitor.forget(hasty)
    monitor.forget(patient)
