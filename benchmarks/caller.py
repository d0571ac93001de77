"""Calls of ``select_destinations`` over the bus, in a closed or an open loop."""

import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from scheduler import objects
from tests.world.connection import KEPT, Connection, select_body

ANSWER_SECONDS = 60
BEHIND_SECONDS = 2.0


class Failed(RuntimeError):
    """A call that was answered with an error, or not at all."""


class Caller:
    """One connection to the broker of *transport_url*, from which *specs* are asked in turn.

    Each call is for so many *servers*.
    """

    def __init__(
        self,
        transport_url: str,
        specs: Sequence[objects.RequestSpec],
        servers: int = 1,
        *,
        takes_refusals: bool = False,
    ) -> None:
        self._servers, self._takes_refusals = servers, takes_refusals
        self._connection = Connection(transport_url, self._received)
        self._bodies = [select_body(spec, self._connection.reply_queue) for spec in specs]
        self._sent = 0
        self._waiting: dict[str, float] = {}
        self._latencies: list[float] = []
        self._last: Any = None

    @property
    def reply_bytes(self) -> int:
        """Size of the last reply."""
        return self._connection.reply_bytes

    def close(self) -> None:
        """Leave the broker."""
        self._connection.close()

    def closed_loop(self, concurrency: int, seconds: float) -> tuple[list[float], float]:
        """Keep so many calls under way for *seconds*; latencies, and the time it took in all."""
        began = time.perf_counter()
        until = began + seconds
        while True:
            # An answer may also come in while the next call is sent.
            while len(self._waiting) < concurrency and time.perf_counter() < until:
                self._send(time.perf_counter())
            if not self._waiting:
                return self._taken(), time.perf_counter() - began
            self._receive()

    def open_loop(self, per_second: float, seconds: float) -> tuple[list[float], float]:
        """Send at a steady rate; latencies count from when a call was due.

        A server that is BEHIND_SECONDS behind gets no more: it does not keep up, which shows.
        """
        began = time.perf_counter()
        total = max(1, round(per_second * seconds))
        for number in range(total):
            due = began + number / per_second
            while (left := due - time.perf_counter()) > 0:
                self._connection.drain(left)
            if len(self._waiting) > BEHIND_SECONDS * per_second:
                break
            self._send(due)
        while self._waiting:
            self._receive()
        return self._taken(), time.perf_counter() - began

    def ask(self) -> Any:
        """One call; returns the result as it came."""
        self._send(time.perf_counter())
        while self._waiting:
            self._receive()
        self._taken()
        return self._last

    def _taken(self) -> list[float]:
        latencies, self._latencies = self._latencies, []
        return latencies

    def _send(self, due: float) -> None:
        body = self._bodies[self._sent % len(self._bodies)]
        self._sent += 1
        call, servers = uuid.uuid4().hex, [str(uuid.uuid4()) for _ in range(self._servers)]
        self._waiting[call] = due
        self._connection.select(body, f"req-{uuid.uuid4()}", servers, call, KEPT)

    def _receive(self) -> None:
        if not self._connection.drain(ANSWER_SECONDS):
            raise Failed(f"no answer within {ANSWER_SECONDS} s")

    def _received(self, reply: Mapping[str, Any]) -> None:
        if reply["failure"] and not self._takes_refusals:
            raise Failed(reply["failure"])
        self._last = reply["result"]
        self._latencies.append(time.perf_counter() - self._waiting.pop(reply["_msg_id"]))
