"""Messages as bytes over one AMQP connection, at little cost to whoever sends them.

Bodies of ``select_destinations`` are rendered once; only identifiers differ.  What is loaded or
measured is thus the scheduler and the broker, not a client library.
"""

import json
import socket
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Self
from urllib.parse import unquote, urlsplit

import amqp
from kombu import compression as compressions

from scheduler import objects
from scheduler.rpc.context import RequestContext

EXCHANGE: Final = "nova"
TOPIC: Final = "scheduler"
#: How long the caller says it waits between two heartbeats of the server, in seconds.
MONITOR_SECONDS: Final = 60
ANSWER_SECONDS: Final = 60.0
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
        self._channel.basic_consume(
            self.reply_queue, consumer_tag=self.reply_queue, no_ack=True, callback=self._receive
        )
        self._received = received
        #: Size of the last reply.
        self.reply_bytes = 0

    def publish(
        self,
        body: bytes | str,
        content_type: str = "application/json",
        *,
        routing_key: str = TOPIC,
        exchange: str = EXCHANGE,
        mode: int = NOT_KEPT,
        compression: str | None = None,
    ) -> None:
        headers = {}
        if compression:
            body, headers["compression"] = compressions.compress(body, compression)
        message = amqp.Message(
            body,
            content_type=content_type,
            content_encoding="utf-8",
            delivery_mode=mode,
            application_headers=headers,
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
        self._connection.close()

    def die(self) -> None:
        self._connection.transport.sock.shutdown(socket.SHUT_RDWR)
        self._connection.transport.close()

    def _receive(self, message: amqp.Message) -> None:
        reply = json.loads(json.loads(message.body)["oslo.message"])
        if not reply["ending"] and reply["result"] is None and not reply["failure"]:
            return  # a heartbeat
        self.reply_bytes = len(message.body)
        self._received(reply)


class RawCaller(Connection):
    """Publishes bodies of the test's own making and keeps all that is answered."""

    def __init__(self, transport_url: str) -> None:
        #: All replies, heartbeats among them, and the properties of each message.
        self.received: list[dict[str, Any]] = []
        self.dressed: list[dict[str, Any]] = []
        super().__init__(transport_url, self.received.append)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def delete_queue(self) -> None:
        """Delete the queue that answers come to; what is sent from now on is never answered."""
        self._channel.basic_cancel(self.reply_queue)  # else its end would be ours
        self._channel.queue_delete(self.reply_queue)

    def call(self, message: Mapping[str, Any], routing_key: str = TOPIC) -> dict[str, Any]:
        """Send *message*, with identifiers of this call, and return the reply's message."""
        return self.answer_to(self.send(message, routing_key))

    def send(self, message: Mapping[str, Any], routing_key: str = TOPIC) -> str:
        """Send *message* as a call of its own; returns the identifier of the call."""
        own = self.call_keys()
        self.publish(enveloped({**message, **own}), routing_key=routing_key)
        return own["_msg_id"]

    def call_keys(self) -> dict[str, str]:
        """What a message needs to be a call that is answered here."""
        own = {"_msg_id": uuid.uuid4().hex, "_unique_id": uuid.uuid4().hex}
        return {**own, "_reply_q": self.reply_queue}

    def answer_to(self, call_id: str, timeout_seconds: float = ANSWER_SECONDS) -> dict[str, Any]:
        deadline = time.monotonic() + timeout_seconds
        while not (found := self.answers_to(call_id)):
            if not self.drain(max(0.01, deadline - time.monotonic())):
                raise AssertionError(f"no answer within {timeout_seconds:g} s")
        return found[0]

    def answers_to(self, call_id: str) -> list[dict[str, Any]]:
        """The final replies received so far, heartbeats left out."""
        return [each for each in self.received if each["_msg_id"] == call_id and each["ending"]]

    def collect(self, names: Sequence[str]) -> None:
        """From now on keep what is sent to the queues *names* of the exchange ``nova``."""
        self._channel.exchange_declare(EXCHANGE, "topic", auto_delete=False)
        for name in names:
            self._channel.queue_declare(name, auto_delete=False)
            self._channel.queue_bind(name, EXCHANGE, name)
            self._channel.queue_purge(name)

    def taken_from(self, name: str) -> list[dict[str, Any]]:
        """The messages that have come to a collected queue since the last look."""
        taken = iter(lambda: self._channel.basic_get(name, no_ack=True), None)
        return [json.loads(json.loads(each.body)["oslo.message"]) for each in taken]

    def _receive(self, message: amqp.Message) -> None:
        self.dressed.append(message.properties)
        self.received.append(json.loads(json.loads(message.body)["oslo.message"]))


def enveloped(message: Mapping[str, Any], version: str = "2.0") -> str:
    """The body of an AMQP message (reference page rpc, section 10)."""
    return json.dumps({"oslo.version": version, "oslo.message": json.dumps(message)})


def failure_of(reply: Mapping[str, Any]) -> dict[str, Any]:
    assert reply["failure"], f"not an error: {reply}"
    failure: dict[str, Any] = json.loads(reply["failure"])
    return failure


def failure_class(reply: Mapping[str, Any]) -> str | None:
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
