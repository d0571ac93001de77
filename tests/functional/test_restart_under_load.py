"""A scheduler that is stopped and started while others call it: every call gets its one answer."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from tests.daemons.fixtures import MakeDeployment
from tests.functional import fleet
from tests.functional.bus import RawCaller, recorded
from tests.waiting import wait_until

CALLERS = 6
RESTARTS = 2
BETWEEN = 60
"""Answers that must have come between two restarts."""


class Caller:
    """Keeps calling until told to stop; two calls are always on the way."""

    def __init__(self, transport_url: str, stopping: threading.Event) -> None:
        self._url = transport_url
        self._stopping = stopping
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
            # Replies come in the order they were sent: a second one to a call came before this.
            raw.call(recorded("baseapi-ping.request"))
            return {call: len(raw.answers_to(call)) for call in self.sent}


def a_request() -> dict[str, Any]:
    """A request for one more server."""
    request = recorded("select_destinations-simple.request")
    request["args"]["instance_uuids"] = [str(uuid.uuid4())]
    return request


def test_no_answer_is_lost_or_given_twice(
    deployment: MakeDeployment, transport_url: str, sqlite_url: str, backend: str
) -> None:
    settings = {"DEFAULT": {"service_down_time": 3600, "debug": False}}
    cloud = deployment(transport_url, sqlite_url, backend=backend, settings=settings)
    fleet.install(sqlite_url)
    scheduler = cloud.start_scheduler().wait_ready()
    stopping = threading.Event()
    callers = [Caller(transport_url, stopping) for _ in range(CALLERS)]
    with ThreadPoolExecutor(CALLERS) as threads, ended(stopping):
        counts = [threads.submit(caller.run) for caller in callers]
        for _ in range(RESTARTS):
            wait_for_more_calls(callers)
            assert scheduler.terminate() == 0
            assert "Traceback" not in scheduler.log
            scheduler = cloud.start_scheduler().wait_ready()
        wait_for_more_calls(callers)
        stopping.set()
        answers = [count.result(timeout=60) for count in counts]

    assert [caller.failures for caller in callers] == [[]] * CALLERS
    assert {number for each in answers for number in each.values()} == {1}
    assert scheduler.terminate() == 0


@contextmanager
def ended(stopping: threading.Event) -> Iterator[None]:
    """Set *stopping* in the end, so that a failed test does not wait for its threads."""
    try:
        yield
    finally:
        stopping.set()


def wait_for_more_calls(callers: list[Caller]) -> None:
    """Return when many more calls have been answered: all but the last two of each caller."""
    enough = sum(len(caller.sent) for caller in callers) + BETWEEN
    wait_until(lambda: sum(len(caller.sent) for caller in callers) >= enough, 60, "answers")
