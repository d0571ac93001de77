"""Answers whose queue is not there: sent when it comes back, or given up.

The queue of a caller is missing for a while after the broker was restarted, until the caller has
declared it again, or for ever, when the caller is gone.  The library has the thread that worked on
the request wait for it, so that one caller that left many requests behind would keep all threads
from serving the others.  Here one thread waits for all such queues.
"""

from __future__ import annotations

import collections
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import oslo_messaging
from oslo_log import log as logging
from oslo_messaging._drivers.amqp import AMQPDestinationNotFound

LOG = logging.getLogger(__name__)

RETRY_SECONDS: Final = 0.25
ENDING_SECONDS: Final = 5.0
"""How long a server that ends waits for queues that are missing."""
MOST_ANSWERS: Final = 1000
"""Kept by one server; beyond that the caller who waits for most loses the oldest of them."""
MISSING: Final = (oslo_messaging.MessageUndeliverable, AMQPDestinationNotFound)
"""What the library raises where a queue is not there."""


@dataclass(frozen=True)
class Answer:
    """To be sent to *queue*; *send* raises one of MISSING while that is not there."""

    queue: str
    send: Callable[[], None]
    give_up: Callable[[], None]
    """Called instead when the queue did not come back; further answers to it are not kept then."""


class Undelivered:
    """The answers of one server that wait; *clock* gives seconds that never go back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        #: By queue, the oldest first, each with the time when it is given up.
        self._waiting: dict[str, collections.deque[tuple[float, Answer]]] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._dropped = 0
        self._ends_at = math.inf

    @property
    def dropped(self) -> int:
        """How many answers were given up."""
        return self._dropped

    def drop(self) -> None:
        """Count an answer that is not even tried, as its queue was given up a moment ago."""
        with self._lock:
            self._dropped += 1

    def awaits(self, queue: str) -> bool:
        """Whether *queue* was missing a moment ago."""
        return queue in self._waiting

    def keep(self, answer: Answer, patience_seconds: float) -> None:
        """Send *answer* as soon as its queue is there; give it up after so many seconds."""
        with self._lock:
            if sum(map(len, self._waiting.values())) >= MOST_ANSWERS:
                self._drop_one()
            own = self._waiting.setdefault(answer.queue, collections.deque())
            own.append((self._clock() + patience_seconds, answer))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="undelivered", daemon=True)
                self._thread.start()

    def wait(self) -> None:
        """Return when every answer has been sent or given up, which it soon is from now on."""
        self._ends_at = self._clock() + ENDING_SECONDS
        thread = self._thread
        if thread is not None:
            thread.join()

    def look(self) -> None:
        """Try once, for each queue, whether it is there now."""
        for queue in list(self._waiting):
            while (first := self._first(queue)) is not None:
                until, answer = first
                try:
                    answer.send()
                except MISSING:
                    if self._clock() >= min(until, self._ends_at):
                        self._abandon(queue, answer)
                    break
                except Exception:
                    LOG.exception("An answer to %s could not be sent", queue)
                    self.drop()
                self._done(answer)

    def _run(self) -> None:
        while True:
            time.sleep(RETRY_SECONDS)
            self.look()
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return

    def _first(self, queue: str) -> tuple[float, Answer] | None:
        with self._lock:
            own = self._waiting.get(queue)
            return own[0] if own else None

    def _done(self, answer: Answer) -> None:
        with self._lock:
            own = self._waiting.get(answer.queue)
            if own and own[0][1] is answer:  # unless it had to make room meanwhile
                self._take(answer.queue)

    def _abandon(self, queue: str, answer: Answer) -> None:
        with self._lock:
            count = len(self._waiting.pop(queue, ()))
            self._dropped += count
        LOG.error("The queue %s did not come back; %d answers to it are given up", queue, count)
        answer.give_up()

    def _drop_one(self) -> None:
        queue = max(self._waiting, key=lambda each: len(self._waiting[each]))
        self._take(queue)
        self._dropped += 1
        LOG.error("An answer to %s is given up, as too many wait for their queues", queue)

    def _take(self, queue: str) -> None:
        own = self._waiting[queue]
        own.popleft()
        if not own:
            del self._waiting[queue]
