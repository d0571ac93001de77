"""Requests that move, wait their turn, or are stuck."""

from __future__ import annotations

import contextlib

import pytest

from scheduler.daemon.in_flight import InFlightRequests

LIMIT_SECONDS = 10.0


class Story:
    """Requests by name, on a clock that is told."""

    def __init__(self) -> None:
        self.now = 100.0
        self.in_flight = InFlightRequests({"select_destinations"}, clock=lambda: self.now)
        self._open: dict[str, contextlib.AbstractContextManager[None]] = {}

    def begin(self, name: str, method: str = "select_destinations") -> None:
        self._open[name] = self.in_flight.request(method)
        self._open[name].__enter__()

    def end(self, name: str) -> None:
        self._open.pop(name).__exit__(None, None, None)

    def play(self, steps: str) -> None:
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
def test_stuck_is_who_does_not_move(steps: str, seconds: float | None) -> None:
    story = Story()
    story.play(steps)
    assert story.in_flight.stuck_for(LIMIT_SECONDS) == seconds


def test_decisions_are_counted_refusals_included() -> None:
    story = Story()
    story.play("+a -a +b:ping -b")
    with pytest.raises(ValueError), story.in_flight.request("select_destinations"):
        raise ValueError
    assert story.in_flight.decided == 2
    assert story.in_flight.in_hand == 0


def test_whoever_comes_after_is_shown_what_is_held_begun_or_not() -> None:
    in_flight, shown = InFlightRequests(), []
    in_flight.hold("a")
    in_flight.show_held(shown.append)
    in_flight.hold("b")
    with in_flight.request("select_destinations"):  # begins and ends while it is held
        in_flight.release("never held")
    in_flight.release("a")
    in_flight.hold("c")
    in_flight.release("b")
    in_flight.release("c")
    assert shown == [1, 2, 2, 1, 2, 1, 0]
