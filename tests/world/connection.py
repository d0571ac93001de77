"""Calls as bytes over one AMQP connection: what a conductor sends, at little cost to the caller.

Bodies of ``select_destinations`` are rendered once; only identifiers differ.  What is loaded or
measured is thus the scheduler and the broker, not a client library.
"""

from __future__ import annotations

import json
import socket
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import amqp

from scheduler import objects
from scheduler.rpc.context import RequestContext
from tests.world.bus import enveloped

EXCHANGE: Final = "nova"
TOPIC: Final = "scheduler"
#: How long the caller says it waits between two heartbeats of the server, in seconds.
MONITOR_SECONDS: Final = 60
NOT_KEPT, KEPT = 1, 2  # delivery modes of AMQP
_CALL, _UNIQUE, _REQUEST, _SERVER = (f"@{name}@" for name in ("call", "unique", "req", "uuid"))
_SERVERS: Final = '\\"@uuids@\\"'


class Connection:
    """A connection to the broker of *transport_url* with a reply queue of its own.

    *received* is called with each final reply: a dict with ``_msg_id``, ``result``, ``failure``.
    """

    def __init__(self, transport_url: str, received: Callable[[dict[str, Any]], None]) -> None:
        parts = urlsplit(transport_url)
        self._connection = amqp.Connection(
            host=f"{parts.hostname}:{parts.port}",
            userid=parts.username or "",
            password=parts.password or "",
            virtual_host=unquote(parts.path[1:]),
        )
        self._connection.connect()
        self._channel = self._connection.channel()
        self.reply_queue = f"reply_{uuid.uuid4().hex}"
        self._channel.queue_declare(self.reply_queue, exclusive=True, auto_delete=True)
        self._channel.basic_consume(self.reply_queue, no_ack=True, callback=self._receive)
        self._received = received
        #: Size of the last reply.
        self.reply_bytes = 0

    def publish(
        self, body: str, routing_key: str = TOPIC, exchange: str = EXCHANGE, mode: int = NOT_KEPT
    ) -> None:
        """Send *body* as it is."""
        message = amqp.Message(
            body, content_type="application/json", content_encoding="utf-8", delivery_mode=mode
        )
        self._channel.basic_publish(message, exchange=exchange, routing_key=routing_key)

    def select(
        self, body: str, request_id: str, uuids: Sequence[str], call: str, mode: int = NOT_KEPT
    ) -> None:
        """Send a :func:`select_body` for these servers as the call of that identifier."""
        for mark, value in (
            (_SERVERS, ", ".join(f'\\"{each}\\"' for each in uuids)),
            (_CALL, call),
            (_UNIQUE, uuid.uuid4().hex),
            (_REQUEST, request_id),
            (_SERVER, uuids[0]),
        ):
            body = body.replace(mark, value)
        self.publish(body, mode=mode)

    def drain(self, seconds: float) -> bool:
        """Take what has come, or comes within *seconds*; False if nothing did."""
        try:
            self._connection.drain_events(timeout=seconds)
        except TimeoutError:
            return False
        return True

    def unread(self, queue: str = TOPIC) -> int:
        """Count the messages of *queue* that nobody has taken yet."""
        return int(self._channel.queue_declare(queue, passive=True).message_count)

    def close(self) -> None:
        """Leave in order."""
        self._connection.close()

    def die(self) -> None:
        """Be gone without a word."""
        self._connection.transport.sock.shutdown(socket.SHUT_RDWR)
        self._connection.transport.close()

    def _receive(self, message: amqp.Message) -> None:
        reply = json.loads(json.loads(message.body)["oslo.message"])
        if not reply["ending"] and reply["result"] is None and not reply["failure"]:
            return  # a heartbeat
        self.reply_bytes = len(message.body)
        self._received(reply)


def failure_class(reply: Mapping[str, Any]) -> str | None:
    """The class of the error that a reply carries."""
    return str(json.loads(reply["failure"])["class"]) if reply["failure"] else None


def chosen_host(answer: Any) -> str:
    """The host chosen for one server, in any form of the answer."""
    if isinstance(answer, dict):
        return str(answer["host"])
    first = answer[0]
    if isinstance(first, dict):
        return str(first["nova_object.data"]["service_host"])
    return str(first.service_host)


def message(
    method: str, arguments: Mapping[str, Any], version: str, request_id: str | None = None
) -> dict[str, Any]:
    """A message without the identifiers of a call."""
    context = RequestContext(
        "user", "project", roles=["member", "reader"], request_id=request_id, overwrite=False
    ).to_dict()
    named = {f"_context_{name}": value for name, value in context.items()}
    return {"method": method, "version": version, "args": dict(arguments), **named}


def call_keys(call: str, reply_queue: str, unique: str = "") -> dict[str, Any]:
    """The part of a message that makes it a call answered to *reply_queue*."""
    return {
        "_msg_id": call,
        "_reply_q": reply_queue,
        "_timeout": MONITOR_SECONDS,
        "_unique_id": unique or uuid.uuid4().hex,
    }


def select_body(spec: objects.RequestSpec, reply_queue: str) -> str:
    """The body of a call of ``select_destinations``, with marks for :meth:`Connection.select`."""
    primitive = spec.obj_to_primitive()
    primitive["nova_object.data"]["instance_uuid"] = _SERVER
    arguments = {
        "spec_obj": primitive,
        "instance_uuids": ["@uuids@"],
        "return_objects": True,
        "return_alternates": True,
    }
    call = message("select_destinations", arguments, "4.5", _REQUEST)
    return enveloped({**call, **call_keys(_CALL, reply_queue, _UNIQUE)})
