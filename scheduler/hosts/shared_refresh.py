"""One read of the state for all requests that were waiting when it began."""

from __future__ import annotations

import threading
from collections.abc import Callable


class SharedRefresh:
    """Runs *read* such that every caller gets the result of a run begun after its call.

    Callers that arrive while a run is under way wait for the next one, and share it.  An error
    of a run is raised in every caller that shared it.
    """

    def __init__(self, read: Callable[[], None]) -> None:
        self._read = read
        self._changed = threading.Condition()
        self._begun = 0
        self._finished = 0
        self._last_error: BaseException | None = None

    def __call__(self) -> None:
        """Return once a run that began after this call has finished."""
        with self._changed:
            mine = self._begun + 1
            while self._finished < mine and self._begun > self._finished:
                self._changed.wait()
            if self._finished >= mine:
                if self._last_error is not None:
                    raise self._last_error
                return
            self._begun = mine
        self._run(mine)

    def _run(self, number: int) -> None:
        error: BaseException | None = None
        try:
            self._read()
        except BaseException as caught:
            error = caught
            raise
        finally:
            with self._changed:
                self._finished = number
                self._last_error = error
                self._changed.notify_all()
