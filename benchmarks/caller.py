"""Calls of ``select_destinations`` as bytes: what a conductor sends, at little cost to the caller.

The messages are rendered once; only identifiers differ.  What is measured is thus the server and
the broker, not a client library.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

import amqp

from scheduler import objects
from scheduler.rpc.context import RequestContext

EXCHANGE = "nova"
TOPIC = "scheduler"
ANSWER_SECONDS = 60
BEHIND_SECONDS = 2.0
#: How long the caller says it waits between two signs of life of the server.
MONITOR_SECONDS = 60
_CALL, _UNIQUE, _REQUEST, _INSTANCE = (f"@{name}@" for name in ("call", "unique", "req", "uuid"))


class Failed(RuntimeError):
    """A call that was answered with an error, or not at all."""


def template(specs: Sequence[objects.RequestSpec], reply_queue: str) -> list[str]:
    """The bodies of calls for *specs*, with marks where the identifiers go."""
    context = RequestContext(
        user_id=uuid.uuid4().hex,
        project_id=uuid.uuid4().hex,
        roles=["member", "reader"],
        overwrite=False,
    ).to_dict()
    context["request_id"] = f"req-{_REQUEST}"
    bodies = []
    for spec in specs:
        primitive = spec.obj_to_primitive()
        primitive["nova_object.data"]["instance_uuid"] = _INSTANCE
        message = {
            "method": "select_destinations",
            "version": "4.5",
            "args": {
                "spec_obj": primitive,
                "instance_uuids": [_INSTANCE],
                "return_objects": True,
                "return_alternates": True,
            },
            "_msg_id": _CALL,
            "_reply_q": reply_queue,
            "_timeout": MONITOR_SECONDS,
            "_unique_id": _UNIQUE,
            **{f"_context_{name}": value for name, value in context.items()},
        }
        envelope = {"oslo.version": "2.0", "oslo.message": json.dumps(message)}
        bodies.append(json.dumps(envelope))
    return bodies


class Caller:
    """One connection to the broker of *transport_url*, from which *specs* are asked in turn."""

    def __init__(self, transport_url: str, specs: Sequence[objects.RequestSpec]) -> None:
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
        self._bodies = template(specs, queue)
        self._sent = 0
        self._waiting: dict[str, float] = {}
        self._latencies: list[float] = []
        self._last: Any = None
        self.reply_bytes = 0

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
                self._receive(left)
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
        call = uuid.uuid4().hex
        body = self._bodies[self._sent % len(self._bodies)]
        self._sent += 1
        for mark, value in (
            (_CALL, call),
            (_UNIQUE, uuid.uuid4().hex),
            (_REQUEST, str(uuid.uuid4())),
            (_INSTANCE, str(uuid.uuid4())),
        ):
            body = body.replace(mark, value)
        message = amqp.Message(
            body, content_type="application/json", content_encoding="utf-8", delivery_mode=2
        )
        self._waiting[call] = due
        self._channel.basic_publish(message, exchange=EXCHANGE, routing_key=TOPIC)

    def _receive(self, timeout: float = ANSWER_SECONDS) -> None:
        try:
            self._connection.drain_events(timeout=timeout)
        except TimeoutError as error:
            if timeout == ANSWER_SECONDS:
                raise Failed(f"no answer within {ANSWER_SECONDS} s") from error

    def _received(self, message: amqp.Message) -> None:
        reply = json.loads(json.loads(message.body)["oslo.message"])
        if not reply["ending"] and reply["result"] is None and not reply["failure"]:
            return  # a sign of life
        if reply["failure"]:
            raise Failed(reply["failure"])
        self._last = reply["result"]
        self.reply_bytes = len(message.body)
        self._latencies.append(time.perf_counter() - self._waiting.pop(reply["_msg_id"]))
