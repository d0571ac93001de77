"""How the request in hand came off the bus: when, and whether somebody else may be at it.

A request waits for a while before anybody works on it.  Whatever was read of the world in that
time need not be read again for its sake: what was begun later is as fresh as it asks for.
"""

from __future__ import annotations

import contextlib
import contextvars
import time
from collections.abc import Iterator

_ARRIVED_AT: contextvars.ContextVar[float | None] = contextvars.ContextVar(
    "arrived_at", default=None
)
_IS_REDELIVERED: contextvars.ContextVar[bool] = contextvars.ContextVar(
    "is_redelivered", default=False
)


@contextlib.contextmanager
def noted(arrived_at: float, *, is_redelivered: bool = False) -> Iterator[None]:
    """Within it this thread, or greenlet, works on a request that came at that time (monotonic).

    *is_redelivered*: the broker had sent it to somebody before, and saw no acknowledgement.
    """
    _ARRIVED_AT.set(arrived_at)
    _IS_REDELIVERED.set(is_redelivered)
    try:
        yield
    finally:
        _ARRIVED_AT.set(None)
        _IS_REDELIVERED.set(False)


def take() -> float:
    """Since when what is read is new to the request in hand, on the monotonic clock.

    Once that is its arrival; who asks again wants to know what has happened since.
    """
    arrived_at = _ARRIVED_AT.get()
    if arrived_at is None:
        return time.monotonic()
    _ARRIVED_AT.set(None)
    return arrived_at


def is_redelivered() -> bool:
    """Whether another worker may have begun with the request in hand, and still be at it."""
    return _IS_REDELIVERED.get()
