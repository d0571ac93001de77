"""Callers that keep a scheduler busy, and see whether each call gets its one answer."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from tests.waiting import wait_until
from tests.world.bus import RawCaller, recorded

Answered = Callable[[dict[str, Any]], object]

BETWEEN = 40
"""How many answers are many more."""


def a_request(**hints: list[str]) -> dict[str, Any]:
    """A request for one more server, with *hints* for filters."""
    request = recorded("select_destinations-simple.request")
    request["args"]["instance_uuids"] = [str(uuid.uuid4())]
    if hints:
        request["args"]["spec_obj"]["nova_object.data"]["scheduler_hints"] = hints
    return request


class Caller:
    """Keeps calling until told to stop; two calls are always on the way.

    *answered* gets each reply that is no failure.
    """

    def __init__(
        self, transport_url: str, stopping: threading.Event, answered: Answered | None
    ) -> None:
        self._url = transport_url
        self._stopping = stopping
        self._answered = answered
        self.sent: list[str] = []
        self.failures: list[str] = []

    def run(self) -> dict[str, int]:
        """Call; returns how many answers each call got."""
        with RawCaller(self._url) as raw:
            while not self._stopping.is_set():
                calls = [raw.send(a_request()) for _ in range(2)]
                self.sent += calls
                replies = [raw.answer_to(call) for call in calls]
                self.failures += [reply["failure"] for reply in replies if reply["failure"]]
                for reply in replies if self._answered else ():
                    if not reply["failure"]:
                        self._answered(reply)
            # Replies come in the order they were sent: a second one to a call came before this.
            raw.call(recorded("baseapi-ping.request"))
            return {call: len(raw.answers_to(call)) for call in self.sent}


class Crowd:
    """Callers that call, each in a thread of its own."""

    def __init__(self, callers: Sequence[Caller], stopping: threading.Event) -> None:
        self._callers = callers
        self._stopping = stopping
        self._counts: list[Future[dict[str, int]]] = []

    def start(self, threads: ThreadPoolExecutor) -> None:
        """Begin."""
        self._counts = [threads.submit(caller.run) for caller in self._callers]

    def wait_for_more_calls(self) -> None:
        """Return when many more calls have been answered: all but the last two of each caller."""
        enough = self._sent() + BETWEEN
        wait_until(lambda: self._sent() >= enough, 60, "answers")

    def finish(self) -> None:
        """Stop calling; every call must have got one answer, and none of them a failure."""
        self._stopping.set()
        answers = [count.result(timeout=60) for count in self._counts]
        assert [caller.failures for caller in self._callers] == [[]] * len(self._callers)
        assert {number for each in answers for number in each.values()} == {1}

    def _sent(self) -> int:
        return sum(len(caller.sent) for caller in self._callers)


@contextmanager
def crowd(transport_url: str, count: int, answered: Answered | None = None) -> Iterator[Crowd]:
    """*count* callers at work; a test that fails does not wait for them."""
    stopping = threading.Event()
    callers = [Caller(transport_url, stopping, answered) for _ in range(count)]
    with ThreadPoolExecutor(count) as threads:
        made = Crowd(callers, stopping)
        made.start(threads)
        try:
            yield made
        finally:
            stopping.set()
