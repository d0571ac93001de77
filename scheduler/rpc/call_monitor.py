"""Telling callers that their calls are being worked on: one thread for all calls.

A caller that monitors its call says how long it waits for a sign of life; the library starts a
thread per call for that, which for a call of a millisecond costs a good part of it.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Any

from oslo_log import log as logging

LOG = logging.getLogger(__name__)


class CallMonitor:
    """Sends a sign of life for each call that it watches, twice per time that its caller waits.

    *clock* gives seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        #: By call: when the next sign is due, and the seconds between two.
        self._watched: dict[Any, tuple[float, float]] = {}
        self._next_look = math.inf
        self._sooner = threading.Event()
        self._lock = threading.Lock()
        self._is_looking = False

    def watch(self, incoming: Any) -> None:
        """From now on *incoming* is being worked on."""
        seconds = _seconds_between_signs(incoming)
        if seconds is None:
            return
        due = self._clock() + seconds
        with self._lock:
            self._watched[incoming] = due, seconds
            if not self._is_looking:
                self._is_looking, self._next_look = True, due
                threading.Thread(target=self._run, name="call-monitor", daemon=True).start()
            elif due < self._next_look:
                self._next_look = due
                self._sooner.set()

    def forget(self, incoming: Any) -> None:
        """The work on *incoming* is over."""
        with self._lock:
            self._watched.pop(incoming, None)

    def _run(self) -> None:
        """Look when something is due, until then nothing is watched any more."""
        while True:
            while (seconds := self._next_look - self._clock()) > 0:
                self._sooner.wait(seconds)
                self._sooner.clear()
            self.look()
            with self._lock:
                if not self._watched:
                    self._is_looking = False
                    return
                self._next_look = min(due for due, _ in self._watched.values())

    def look(self) -> None:
        """Send the signs that are due."""
        now = self._clock()
        with self._lock:
            late = [incoming for incoming, (due, _) in self._watched.items() if due <= now]
            for incoming in late:
                seconds = self._watched[incoming][1]
                self._watched[incoming] = now + seconds, seconds
        for incoming in late:
            if incoming in self._watched:
                self._tell(incoming)

    def _tell(self, incoming: Any) -> None:
        LOG.debug("A sign of life for %s", incoming.message.get("method"))
        try:
            incoming.heartbeat()
        except Exception as error:  # noqa: BLE001 - the broker or the caller is gone; the call ends by itself
            LOG.debug("The sign of life could not be sent: %s", error)
            self.forget(incoming)


def _seconds_between_signs(incoming: Any) -> float | None:
    """Half of what the caller waits; None if it does not say, or nothing that can be kept."""
    given = incoming.client_timeout
    if not given:
        return None
    try:
        seconds = int(given) / 2
    except (TypeError, ValueError):
        seconds = 0.0
    if seconds < 1:
        LOG.warning("Client provided an invalid timeout value of %r", given)
        return None
    return seconds
