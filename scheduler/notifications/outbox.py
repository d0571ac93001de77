"""Sends in the background, so that a bus that does not answer holds nobody up."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Final

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

CLOSE_SECONDS: Final = 5.0
"""Longest wait of the process's end for what was not sent yet."""


class Outbox:
    """At most *limit* notifications wait here; what comes on top is dropped, and counted.

    The thread starts with the first one, thus after the workers have been forked.
    """

    def __init__(self, limit: int) -> None:
        self._waiting: queue.Queue[tuple[str, Callable[[], None]] | None] = queue.Queue(limit)
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self.dropped = 0
        """Number of sends dropped so far."""
        self._dropped_in_a_row = 0

    @property
    def waiting(self) -> int:
        """Number of sends not done yet."""
        return self._waiting.qsize()

    def put(self, event_type: str, send: Callable[[], None]) -> None:
        """Have *send* called soon; never waits, never raises."""
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="notifications", daemon=True)
                self._thread.start()
        try:
            self._waiting.put_nowait((event_type, send))
        except queue.Full:
            self.dropped += 1
            self._dropped_in_a_row += 1
            if self._dropped_in_a_row == 1:
                LOG.warning(
                    "Notifications are dropped, %s first: the bus takes none, and %d are waiting",
                    event_type,
                    self._waiting.maxsize,
                )
            return
        if self._dropped_in_a_row:
            LOG.warning("%d notifications were dropped", self._dropped_in_a_row)
            self._dropped_in_a_row = 0

    def close(self, timeout_seconds: float = CLOSE_SECONDS) -> None:
        """Send what waits, for at most *timeout_seconds*; the rest is lost, with a warning."""
        if self._thread is None:
            return
        try:
            self._waiting.put(None, timeout=timeout_seconds)
        except queue.Full:
            pass
        else:
            self._thread.join(timeout_seconds)
        if self._thread.is_alive():
            LOG.warning("%d notifications could not be sent in time", self._waiting.qsize())
        self._thread = None

    def _run(self) -> None:
        while (entry := self._waiting.get()) is not None:
            event_type, send = entry
            try:
                send()
            except Exception:
                LOG.exception("The notification %s could not be sent", event_type)
