"""Callers that keep a scheduler busy, and see whether each call gets its one answer."""

import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from tests.waiting import wait_until
from tests.world.bus import recorded
from tests.world.connection import RawCaller

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


class Crowd:
    """*count* callers, each in a thread of its own, with two calls always on the way.

    *answered* gets each reply that is no failure.
    """

    def __init__(self, transport_url: str, count: int, answered: Answered | None) -> None:
        self._url = transport_url
        self._answered = answered
        self._sent: list[list[str]] = [[] for _caller in range(count)]
        self._failures: list[str] = []
        self._stopping = threading.Event()
        self._threads = ThreadPoolExecutor(count)
        self._counts = [self._threads.submit(self._run, sent) for sent in self._sent]

    def _run(self, sent: list[str]) -> dict[str, int]:
        """Call until told to stop; returns how many answers each call got."""
        with RawCaller(self._url) as raw:
            while not self._stopping.is_set():
                calls = [raw.send(a_request()) for _ in range(2)]
                sent += calls
                for reply in [raw.answer_to(call) for call in calls]:
                    if reply["failure"]:
                        self._failures.append(reply["failure"])
                    elif self._answered:
                        self._answered(reply)
            # Replies come in the order they were sent: a second one to a call came before this.
            raw.call(recorded("baseapi-ping.request"))
            return {call: len(raw.answers_to(call)) for call in sent}

    def wait_for_more_calls(self) -> None:
        """Return when many more calls have been answered: all but the last two of each caller."""
        enough = sum(map(len, self._sent)) + BETWEEN
        wait_until(lambda: sum(map(len, self._sent)) >= enough, 60, "answers")

    def finish(self) -> None:
        """Stop calling; every call must have got one answer, and none of them a failure."""
        self._stopping.set()
        answers = [count.result(timeout=60) for count in self._counts]
        assert self._failures == []
        assert {number for each in answers for number in each.values()} == {1}

    def stop(self) -> None:
        self._stopping.set()
        self._threads.shutdown()


@contextmanager
def crowd(transport_url: str, count: int, answered: Answered | None = None) -> Iterator[Crowd]:
    """Callers at work; they stop with the ``with``."""
    made = Crowd(transport_url, count, answered)
    try:
        yield made
    finally:
        made.stop()
