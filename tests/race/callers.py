"""The callers: as many requests under way as there are callers, on one connection to the broker.

A caller whose answer does not come asks once more with the same request id, as conductors do; an
answer to what it no longer waits for is not looked at.
"""

import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks import requests as samples
from scheduler import objects
from tests.race.plan import SIZES_MB, Plan
from tests.world.connection import Connection, chosen_host, failure_class, select_body

POLL_SECONDS = 0.02


@dataclass(slots=True, eq=False)
class Request:
    """One request, from its first sending to its end.

    *answer*: per server the Selections as they came; *failure*: the error's class, or ``timeout``.
    """

    id: str
    uuids: tuple[str, ...]
    memory_mb: int
    #: Sent twice at once, as a broker may deliver twice.
    is_doubled: bool = False
    sent_at: float = 0.0
    last_sent_at: float = 0.0
    ended_at: float = 0.0
    tries: int = 0
    answer: list[list[Mapping[str, Any]]] | None = None
    failure: str | None = None
    #: Answers to the same request that differ from the first one.
    contradictions: list[str] = field(default_factory=list)
    calls: set[str] = field(default_factory=set)


class Callers:
    """Sends what :meth:`ask` gets; every request comes back once, through *ended*."""

    def __init__(self, plan: Plan, transport_url: str, ended: Callable[[Request], None]) -> None:
        self._plan = plan
        self._ended = ended
        self._request_of_call: dict[str, Request] = {}
        self._under_way: set[Request] = set()
        self.counts: Counter[str] = Counter()
        self._connection = Connection(transport_url, self._received)
        queue = self._connection.reply_queue
        self._bodies = {
            (size, count): select_body(a_spec(size, count, str(uuid.uuid4())), queue)
            for size in SIZES_MB
            for count in (1, 2, 3)
        }

    @property
    def waiting(self) -> int:
        return len(self._under_way)

    def ask(self, request: Request) -> None:
        request.sent_at = time.time()
        self._under_way.add(request)
        self._send(request)
        if request.is_doubled:
            self._publish(request)

    def step(self) -> None:
        """Take the answers that are there, or come soon; send again what waited for too long."""
        self._connection.drain(POLL_SECONDS)
        late = time.time() - self._plan.answer_seconds
        for request in [each for each in self._under_way if each.last_sent_at < late]:
            self._lost(request)

    def unread(self) -> int:
        return self._connection.unread()

    def close(self) -> None:
        self._connection.close()

    def _lost(self, request: Request) -> None:
        if request not in self._under_way:
            return  # sending takes answers, too
        self.counts["answers that did not come in time"] += 1
        for call in request.calls:
            del self._request_of_call[call]
        request.calls.clear()
        if request.tries < self._plan.tries:
            self._send(request)
            return
        request.failure = "timeout"
        self._end(request)

    def _send(self, request: Request) -> None:
        request.tries += 1
        request.last_sent_at = time.time()
        self._publish(request)

    def _publish(self, request: Request) -> None:
        call = uuid.uuid4().hex
        request.calls.add(call)
        self._request_of_call[call] = request
        body = self._bodies[request.memory_mb, len(request.uuids)]
        self._connection.select(body, request.id, request.uuids, call)

    def _received(self, reply: Mapping[str, Any]) -> None:
        request = self._request_of_call.pop(reply["_msg_id"], None)
        if request is None:
            self.counts["answers that came too late"] += 1
            return
        request.calls.discard(reply["_msg_id"])
        self._take(request, reply["result"], failure_class(reply))

    def _take(self, request: Request, answer: Any, failure: str | None) -> None:
        answer = None if failure else answer
        if request not in self._under_way:  # the second answer to one that was sent twice
            if hosts_of(answer) != hosts_of(request.answer):
                request.contradictions.append(failure or str(hosts_of(answer)))
            return
        request.answer, request.failure = answer, failure
        self._end(request)

    def _end(self, request: Request) -> None:
        request.ended_at = time.time()
        self._under_way.discard(request)
        self._ended(request)


class AnsweredHosts:
    """The host of each server, as callers were told: with claims or without, the same question.

    An answer counts until just before the server goes."""

    def __init__(self, host_mb: int) -> None:
        self._host_mb = host_mb
        self._lock = threading.Lock()
        self._host_of_server: dict[str, tuple[str, int]] = {}
        self._promised_mb: Counter[str] = Counter()
        #: How often a host was promised beyond its memory, and by how much at most.
        self.double_bookings = 0
        self.worst_mb = 0

    def promise(self, server: str, host: str, memory_mb: int) -> None:
        with self._lock:
            self._take(server)
            self._host_of_server[server] = host, memory_mb
            self._promised_mb[host] += memory_mb
            excess = self._promised_mb[host] - self._host_mb
            if excess > 0:
                self.double_bookings += 1
                self.worst_mb = max(self.worst_mb, excess)

    def release(self, server: str) -> None:
        """The server is about to go, or will not come."""
        with self._lock:
            self._take(server)

    def _take(self, server: str) -> None:
        host, memory_mb = self._host_of_server.pop(server, ("", 0))
        self._promised_mb[host] -= memory_mb


def hosts_of(answer: list[list[Mapping[str, Any]]] | None) -> list[str]:
    return [chosen_host(row) for row in answer or ()]


def a_spec(memory_mb: int, count: int, own: str) -> objects.RequestSpec:
    """What is asked: *count* servers that need nothing but memory."""
    flavor = {"memory_mb": memory_mb, "root_gb": 0, "name": f"m{memory_mb}"}
    spec = samples.a_request(0, flavor=flavor, num_instances=count)
    spec.instance_uuid = own
    return spec
