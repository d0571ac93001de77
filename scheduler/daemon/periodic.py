"""Work that is repeated as long as the service runs (reference page service, section 4)."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

DEFAULT_SPACING_SECONDS = 60


class RepeatingTask:
    """Calls *run* again and again in a thread of its own: one of *threads*, a threading module.

    A run that fails is logged, and the next one comes all the same; tasks do not wait for each
    other.  A spacing of 0 means 60 seconds, a negative one never.
    """

    def __init__(
        self,
        name: str,
        run: Callable[[], None],
        spacing_seconds: float,
        jitter: float = 0.0,
        threads: Any = threading,
    ) -> None:
        """*jitter* is the share of the spacing that is added at most, at random, to a pause."""
        self.name = name
        self._run = run
        self._spacing_seconds = spacing_seconds or DEFAULT_SPACING_SECONDS
        self._jitter = jitter
        self._threads = threads
        self._ended = threads.Event()
        self._thread: Any = None

    def start(self, initial_delay_seconds: float = 0) -> None:
        """Begin, the first run after *initial_delay_seconds*."""
        if self._spacing_seconds < 0:
            LOG.info("Skipping periodic task %s because its interval is negative", self.name)
            return
        self._ended.clear()
        self._thread = self._threads.Thread(
            target=self._loop, args=(initial_delay_seconds,), name=self.name, daemon=True
        )
        self._thread.start()

    def respace(self, spacing_seconds: float) -> None:
        """Run at another spacing, counted from now on; not while a run is under way."""
        spacing_seconds = spacing_seconds or DEFAULT_SPACING_SECONDS
        if spacing_seconds == self._spacing_seconds:
            return
        self.stop()
        self._spacing_seconds = spacing_seconds
        self.start(max(0.0, spacing_seconds))

    def stop(self) -> None:
        """End, and wait for a run that is under way; nothing happens if it was never started."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._ended.set()
            thread.join()

    def _loop(self, pause_seconds: float) -> None:
        while not self._ended.wait(pause_seconds):
            pause_seconds = self.run_once()

    def run_once(self) -> float:
        """Run now; returns the seconds until the next run is due."""
        began = time.monotonic()
        LOG.debug("Running periodic task %s", self.name)
        try:
            self._run()
        except Exception:
            LOG.exception("Error during %s", self.name)
        extra = int(self._spacing_seconds * random.uniform(0, self._jitter))
        return max(0.0, began + self._spacing_seconds + extra - time.monotonic())
