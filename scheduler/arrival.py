"""When the request in hand came off the bus: what was begun later is as fresh as it asks for.

A request waits for a while before anybody works on it.  Whatever was read of the world in that
time need not be read again for its sake.
"""

from __future__ import annotations

import contextlib
import contextvars
import time
from collections.abc import Iterator

_ARRIVED_AT: contextvars.ContextVar[float | None] = contextvars.ContextVar(
    "arrived_at", default=None
)


@contextlib.contextmanager
def noted(arrived_at: float) -> Iterator[None]:
    """Within it this thread, or greenlet, works on a request that came at that time (monotonic)."""
    _ARRIVED_AT.set(arrived_at)
    try:
        yield
    finally:
        _ARRIVED_AT.set(None)


def take() -> float:
    """Since when what is read is new to the request in hand, on the monotonic clock.

    Once that is its arrival; who asks again wants to know what has happened since.
    """
    arrived_at = _ARRIVED_AT.get()
    if arrived_at is None:
        return time.monotonic()
    _ARRIVED_AT.set(None)
    return arrived_at
