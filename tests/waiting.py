"""Waiting for a condition instead of for a time, and a clock that does not pass by itself."""

import time
from collections.abc import Callable
from typing import TypeVar

_Value = TypeVar("_Value")

_POLL_SECONDS = 0.05


def wait_until(
    condition: Callable[[], _Value],
    timeout_seconds: float = 60.0,
    describe: str | Callable[[], str] = "",
) -> _Value:
    """Return the first true value of *condition*, asked for again and again until the deadline.

    Raises AssertionError after *timeout_seconds*; *describe* (text, or a function called only
    then) says what was waited for.
    """
    deadline = time.monotonic() + timeout_seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            text = describe() if callable(describe) else describe or repr(condition)
            raise AssertionError(f"not within {timeout_seconds:g} s: {text}")
        time.sleep(_POLL_SECONDS)


class Clock:
    """Stands still until it is moved."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
