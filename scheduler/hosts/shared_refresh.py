"""One read of the state for all requests that had arrived when it began."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

NEVER, SOON = float("-inf"), float("inf")


class SharedRefresh:
    """Runs *read* such that every caller gets the result of a run begun after its arrival.

    Callers that come while a run is under way which began too early for them wait for the next
    one, and share it.  An error of a run is raised in every caller that shared it; a run that
    failed serves nobody who comes later.  Before a run *gather* lets others come, who share it.
    *clock* never goes back.
    """

    def __init__(
        self,
        read: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
        gather: Callable[[], None] = lambda: None,
    ) -> None:
        self._read = read
        self._gather = gather
        self._clock = clock
        self._changed = threading.Condition()
        self._begun = 0
        self._finished = 0
        self._begun_at = self._good_since = NEVER
        self._last_error: BaseException | None = None

    def __call__(self, arrived_at: float | None = None) -> None:
        """Return once a run has finished that began after *arrived_at*; None: after this call."""
        since = self._clock() if arrived_at is None else arrived_at
        if self._good_since > since:
            return
        with self._changed:
            is_shared = self._begun > self._finished and self._begun_at > since
            mine = self._begun + (not is_shared)
            while self._finished < mine and self._begun > self._finished:
                self._changed.wait()
            if self._finished >= mine:
                if self._last_error is not None:
                    raise self._last_error
                return
            self._begun = mine
            self._begun_at = SOON
        self._run(mine)

    def _run(self, number: int) -> None:
        error: BaseException | None = None
        try:
            self._gather()
            self._begun_at = self._clock()
            self._read()
        except BaseException as caught:
            error = caught
            raise
        finally:
            with self._changed:
                self._finished = number
                self._last_error = error
                if error is None:
                    self._good_since = self._begun_at
                self._changed.notify_all()
