"""Requests in flight: those that a worker has begun and not ended, and which of them are stuck.

A process can be alive, with its loop turning, while the requests it took are stuck: in a filter
that never returns, or behind a lock that is never given back.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class InFlightRequest:
    """A request that is being worked on."""

    method: str
    request_id: str | None
    began_at: float


class InFlightRequests:
    """Of one worker; *decisions* are the methods whose requests are counted as decided.

    *clock* gives seconds that never go back.
    """

    def __init__(
        self, decisions: Collection[str] = (), clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.decided = 0
        """Number of answered requests for a decision, refusals included."""
        self._decisions = frozenset(decisions)
        self._clock = clock
        self._in_hand: set[InFlightRequest] = set()
        #: Messages that nobody else gets any more, from when they were taken from the bus.
        self._held: set[object] = set()
        self._show: Callable[[int], None] | None = None
        self._showing = threading.Lock()
        self.lost_before = 0
        """Number of requests lost with the worker whose place this one took, if that died."""
        #: When a request was ended last.
        self.moved_at = clock()
        #: By method: when the request that was ended began, of all that were ended the latest.
        self._latest_ended: dict[str, float] = {}

    def show_held(self, show: Callable[[int], None]) -> None:
        """From now on *show* how many messages are held, to whoever comes after this worker."""
        self._show = show
        show(len(self._held))

    def hold(self, message: object) -> None:
        """Note that *message* is lost with this worker from now on: the bus has forgotten it."""
        self._held.add(message)
        self._shown()

    def release(self, message: object) -> None:
        """Note that *message* was answered, or needs no answer; it need not have been held."""
        self._held.discard(message)
        self._shown()

    @property
    def in_hand(self) -> int:
        """Number of requests being worked on."""
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
            self._note_end(request)

    def _shown(self) -> None:
        if self._show is not None:
            with self._showing:
                self._show(len(self._held))

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
            if now - self.moved_at > limit_seconds or self._was_overtaken(one)
        ]
        return max(stuck, default=None)

    def _was_overtaken(self, request: InFlightRequest) -> bool:
        return self._latest_ended.get(request.method, request.began_at) > request.began_at

    def _note_end(self, request: InFlightRequest) -> None:
        self.moved_at = self._clock()
        method = request.method
        if method in self._decisions:
            self.decided += 1
        latest = self._latest_ended.get(method, request.began_at)
        self._latest_ended[method] = max(latest, request.began_at)
