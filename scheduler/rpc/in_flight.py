"""Requests in flight: those begun and not ended, which are stuck, and heartbeats to their callers.

A process can be alive, with its loop turning, while the requests it took are stuck: in a filter
that never returns, or behind a lock that is never given back.

A caller that monitors its call says how long it waits for a heartbeat.  The library starts
a thread per call for that, which for a call of a millisecond costs a good part of it.  Here one
thread serves all calls.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

LEAST_SECONDS: Final = 2
"""The shortest patience of a caller that can be kept: two heartbeats fall into it."""
LOOK_SECONDS: Final = 0.5
"""Between two looks at what is due."""


@dataclass(frozen=True, eq=False)
class InFlightRequest:
    method: str
    request_id: str | None
    began_at: float


class InFlightRequests:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._in_hand: set[InFlightRequest] = set()
        #: When a request was ended last.
        self.moved_at = clock()
        #: By method: when the request that was ended began, of all that were ended the latest.
        self._latest_ended: dict[str, float] = {}

    @property
    def in_hand(self) -> int:
        return len(self._in_hand)

    def requests(self) -> list[tuple[InFlightRequest, float]]:
        """Requests being worked on and their ages in seconds, oldest first; takes no lock."""
        now = self._clock()
        several = sorted(list(self._in_hand), key=lambda one: one.began_at)
        return [(one, now - one.began_at) for one in several]

    @contextlib.contextmanager
    def request(self, method: str, request_id: str | None = None) -> Iterator[None]:
        """Within it this thread, or greenlet, works on a request."""
        request = InFlightRequest(method, request_id, self._clock())
        self._in_hand.add(request)
        try:
            yield
        finally:
            self._in_hand.discard(request)
            self.moved_at = self._clock()
            latest = self._latest_ended.get(method, request.began_at)
            self._latest_ended[method] = max(latest, request.began_at)

    def stuck_for(self, limit_seconds: float) -> float | None:
        """Age in seconds of the oldest stuck request; None if none is stuck.

        Stuck is what began *limit_seconds* ago, unless it may be waiting its turn: others were
        ended meanwhile, and none of them is of its kind and began later.
        """
        now = self._clock()
        still = [one for one in list(self._in_hand) if now - one.began_at > limit_seconds]
        stuck = [
            now - one.began_at
            for one in still
            if now - self.moved_at > limit_seconds
            or self._latest_ended.get(one.method, one.began_at) > one.began_at
        ]
        return max(stuck, default=None)


class CallMonitor:
    """Sends a heartbeat for each call that it watches, twice per time that its caller waits."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        #: By call: when the next heartbeat is due, and the seconds between two.
        self._watched: dict[Any, tuple[float, float]] = {}
        self._lock = threading.Lock()
        self._is_started = False
        self.failed = 0
        """Number of heartbeats that could not be sent."""

    def watch(self, incoming: Any) -> None:
        """From now on *incoming*, whose caller may say how long it waits, is being worked on."""
        patience_seconds = incoming.client_timeout
        if not patience_seconds:
            return
        if patience_seconds < LEAST_SECONDS:
            LOG.warning("Client provided an invalid timeout value of %r", patience_seconds)
            return
        seconds = patience_seconds / 2
        with self._lock:
            self._watched[incoming] = self._clock() + seconds, seconds
            is_first, self._is_started = not self._is_started, True
        if is_first:
            threading.Thread(target=self._run, name="call-monitor", daemon=True).start()

    def forget(self, incoming: Any) -> None:
        with self._lock:
            self._watched.pop(incoming, None)

    def _run(self) -> None:
        while True:
            time.sleep(LOOK_SECONDS)
            self.look()

    def look(self) -> None:
        """Send the heartbeats that are due; those that fail are due again at the next look."""
        now = self._clock()
        with self._lock:
            watched = list(self._watched.items())
        for incoming, (due, seconds) in watched:
            if due > now or incoming not in self._watched:
                continue
            try:
                incoming.heartbeat()
            except Exception as error:  # noqa: BLE001 - a new connection mends it, or nothing can
                LOG.debug("A heartbeat to a caller could not be sent: %s", error)
                self.failed += 1
                continue
            with self._lock:
                if incoming in self._watched:
                    self._watched[incoming] = now + seconds, seconds
