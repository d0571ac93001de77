"""The callers: as many requests under way as there are callers, on one connection to the broker.

A caller whose answer does not come asks once more with the same request id, as conductors do; an
answer to what it no longer waits for is not looked at.
"""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

import amqp

from benchmarks import requests as samples
from benchmarks.race.plan import SIZES_MB, Plan
from scheduler import objects
from scheduler.rpc.context import RequestContext

EXCHANGE, TOPIC = "nova", "scheduler"
_CALL, _UNIQUE, _REQUEST, _SERVER = (f"@{name}@" for name in ("call", "unique", "req", "uuid"))
_SERVERS = '["@uuids@"]'
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
    contradictions: int = 0
    calls: set[str] = field(default_factory=set)


class Callers:
    """Sends what :meth:`ask` gets; every request comes back once, through *ended*."""

    def __init__(self, plan: Plan, transport_url: str, ended: Callable[[Request], None]) -> None:
        self._plan = plan
        self._ended = ended
        self._of_call: dict[str, Request] = {}
        self._under_way: set[Request] = set()
        self.counts: Counter[str] = Counter()
        parts = urlsplit(transport_url)
        self._connection = amqp.Connection(
            host=f"{parts.hostname}:{parts.port}",
            userid=parts.username or "",
            password=parts.password or "",
            virtual_host=unquote(parts.path[1:]),
        )
        self._connection.connect()
        self._channel = self._connection.channel()
        queue = f"reply_{uuid.uuid4().hex}"
        self._channel.queue_declare(queue, exclusive=True, auto_delete=True)
        self._channel.basic_consume(queue, no_ack=True, callback=self._received)
        self._bodies = {
            (size, count): _body(size, count, queue) for size in SIZES_MB for count in (1, 2, 3)
        }

    @property
    def waiting(self) -> int:
        """How many requests are under way."""
        return len(self._under_way)

    def ask(self, request: Request) -> None:
        """Send a request."""
        request.sent_at = time.time()
        self._under_way.add(request)
        self._send(request)
        if request.is_doubled:
            self._publish(request)

    def step(self) -> None:
        """Take the answers that are there, or come soon; send again what waited for too long."""
        with contextlib.suppress(TimeoutError):
            self._connection.drain_events(timeout=POLL_SECONDS)
        late = time.time() - self._plan.answer_seconds
        for request in [each for each in self._under_way if each.last_sent_at < late]:
            self._lost(request)

    def unread(self) -> int:
        """How many calls no scheduler has taken yet."""
        return int(self._channel.queue_declare(TOPIC, passive=True).message_count)

    def close(self) -> None:
        """Leave the broker."""
        self._connection.close()

    def _lost(self, request: Request) -> None:
        if request not in self._under_way:
            return  # sending takes answers, too
        self.counts["answers that did not come in time"] += 1
        for call in request.calls:
            del self._of_call[call]
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
        uuids = ", ".join(f'\\"{each}\\"' for each in request.uuids)
        body = self._bodies[request.memory_mb, len(request.uuids)]
        for mark, value in (
            (_SERVERS.replace('"', '\\"'), f"[{uuids}]"),
            (_CALL, call),
            (_UNIQUE, uuid.uuid4().hex),
            (_REQUEST, request.id),
            (_SERVER, request.uuids[0]),
        ):
            body = body.replace(mark, value)
        request.calls.add(call)
        self._of_call[call] = request
        message = amqp.Message(
            body, content_type="application/json", content_encoding="utf-8", delivery_mode=1
        )
        self._channel.basic_publish(message, exchange=EXCHANGE, routing_key=TOPIC)

    def _received(self, message: amqp.Message) -> None:
        reply = json.loads(json.loads(message.body)["oslo.message"])
        if not reply["ending"] and reply["result"] is None and not reply["failure"]:
            return  # a sign of life
        request = self._of_call.pop(reply["_msg_id"], None)
        if request is None:
            self.counts["answers that came too late"] += 1
            return
        request.calls.discard(reply["_msg_id"])
        self._take(request, reply)

    def _take(self, request: Request, reply: Mapping[str, Any]) -> None:
        answer, failure = None, None
        if reply["failure"]:
            failure = json.loads(reply["failure"])["class"]
        else:
            answer = reply["result"]
        if request not in self._under_way:  # the second answer to one that was sent twice
            if hosts_of(answer) != hosts_of(request.answer):
                request.contradictions += 1
            return
        request.answer, request.failure = answer, failure
        self._end(request)

    def _end(self, request: Request) -> None:
        request.ended_at = time.time()
        self._under_way.discard(request)
        self._ended(request)


def hosts_of(answer: list[list[Mapping[str, Any]]] | None) -> list[str]:
    """The hosts chosen; empty without an answer."""
    return [row[0]["nova_object.data"]["service_host"] for row in answer or ()]


def a_spec(memory_mb: int, count: int, own: str = _SERVER) -> objects.RequestSpec:
    """What is asked: *count* servers that need nothing but memory."""
    flavor = {"memory_mb": memory_mb, "root_gb": 0, "name": f"m{memory_mb}"}
    spec = samples.a_request(0, flavor=flavor, num_instances=count)
    spec.instance_uuid = own
    return spec


def _body(memory_mb: int, count: int, reply_queue: str) -> str:
    """A call's body, with marks where the identifiers go."""
    context = RequestContext(user_id="u", project_id="p", overwrite=False).to_dict()
    context["request_id"] = _REQUEST
    primitive = a_spec(memory_mb, count, str(uuid.uuid4())).obj_to_primitive()
    primitive["nova_object.data"]["instance_uuid"] = _SERVER
    message = {
        "method": "select_destinations",
        "version": "4.5",
        "args": {
            "spec_obj": primitive,
            "instance_uuids": ["@uuids@"],
            "return_objects": True,
            "return_alternates": True,
        },
        "_msg_id": _CALL,
        "_reply_q": reply_queue,
        "_timeout": 60,
        "_unique_id": _UNIQUE,
        **{f"_context_{name}": value for name, value in context.items()},
    }
    return json.dumps({"oslo.version": "2.0", "oslo.message": json.dumps(message)})
