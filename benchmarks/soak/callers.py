"""Callers on connections of their own, that send bytes and read answers; some die."""

from __future__ import annotations

import json
import socket
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import amqp

from benchmarks.soak.demands import Demand
from scheduler import objects
from scheduler.rpc import worker_client
from scheduler.rpc.context import RequestContext

EXCHANGE, TOPIC, WORKERS = "nova", "scheduler", "scheduler_worker"
FANOUT: Final = f"{TOPIC}_fanout"
RECEIVE_SECONDS: Final = 0.01
ANSWER_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Answer:
    """What came back: the hosts, one per server, or the class of the error.

    *demand* is None for what is no request for hosts.
    """

    demand: Demand | None
    hosts: Sequence[str]
    failure: str | None


class Caller:
    """One connection; *answered* is told of each answer."""

    def __init__(self, transport_url: str, answered: Callable[[Answer], None]) -> None:
        parts = urlsplit(transport_url)
        self._connection = amqp.Connection(
            host=f"{parts.hostname}:{parts.port}",
            userid=parts.username or "",
            password=parts.password or "",
            virtual_host=unquote(parts.path[1:]),
        )
        self._connection.connect()
        self._channel = self._connection.channel()
        self._queue = f"reply_{uuid.uuid4().hex}"
        self._channel.queue_declare(self._queue, exclusive=True, auto_delete=True)
        self._channel.basic_consume(self._queue, no_ack=True, callback=self._received)
        self._answered = answered
        self._waiting: dict[str, tuple[Demand | None, float]] = {}

    @property
    def waiting(self) -> int:
        """How many requests are under way; one that was not answered in time is an error."""
        late = time.monotonic() - ANSWER_SECONDS
        for call, (demand, sent_at) in list(self._waiting.items()):
            if sent_at < late:
                del self._waiting[call]
                self._answered(Answer(demand, (), "Timeout"))
        return len(self._waiting)

    def select(self, demand: Demand) -> None:
        """Ask for hosts."""
        arguments = {
            name: objects.to_plain(value) if name != "spec_obj" else value.obj_to_primitive()
            for name, value in demand.arguments.items()
        }
        message = _message("select_destinations", arguments, demand.version, demand.request_id)
        self._call(message, TOPIC, demand)

    def ask_worker(self, server: str, method: str, arguments: Mapping[str, Any]) -> None:
        """Ask one worker about itself."""
        message = _message(method, arguments, worker_client.VERSION)
        message["namespace"] = worker_client.NAMESPACE
        self._call(message, f"{WORKERS}.{server}", None)

    def cast(self, method: str, arguments: Mapping[str, Any], version: str = "4.2") -> None:
        """Tell all schedulers something."""
        message = _message(method, arguments, version)
        message["_unique_id"] = uuid.uuid4().hex
        self.publish(_enveloped(message), "", FANOUT)

    def _call(self, message: dict[str, Any], routing_key: str, demand: Demand | None) -> None:
        call = uuid.uuid4().hex
        message |= {"_msg_id": call, "_reply_q": self._queue, "_unique_id": uuid.uuid4().hex}
        message["_timeout"] = ANSWER_SECONDS
        self._waiting[call] = demand, time.monotonic()
        self.publish(_enveloped(message), routing_key)

    def publish(self, body: str, routing_key: str, exchange: str = EXCHANGE) -> None:
        """Send *body* as it is."""
        message = amqp.Message(body, content_type="application/json", content_encoding="utf-8")
        self._channel.basic_publish(message, exchange=exchange, routing_key=routing_key)

    def receive(self) -> None:
        """Take the answers that are there, or come soon."""
        try:
            self._connection.drain_events(timeout=RECEIVE_SECONDS)
        except TimeoutError:
            return

    def die(self) -> None:
        """Be gone without a word."""
        self._connection.transport.sock.shutdown(socket.SHUT_RDWR)
        self._connection.transport.close()

    def close(self) -> None:
        """Leave in order."""
        self._connection.close()

    def _received(self, message: amqp.Message) -> None:
        reply = json.loads(json.loads(message.body)["oslo.message"])
        if not reply["ending"] and reply["result"] is None and not reply["failure"]:
            return  # a sign of life
        demand, _sent_at = self._waiting.pop(reply["_msg_id"], (None, 0.0))
        failure = json.loads(reply["failure"])["class"] if reply["failure"] else None
        answered = demand is not None and failure is None
        hosts = [_host(each) for each in reply["result"]] if answered else ()
        self._answered(Answer(demand, hosts, failure))


def _message(
    method: str, arguments: Mapping[str, Any], version: str, request_id: str | None = None
) -> dict[str, Any]:
    context = RequestContext("user", "project", request_id=request_id, overwrite=False).to_dict()
    named = {f"_context_{name}": value for name, value in context.items()}
    return {"method": method, "version": version, "args": dict(arguments), **named}


def _enveloped(message: Mapping[str, Any]) -> str:
    return json.dumps({"oslo.version": "2.0", "oslo.message": json.dumps(message)})


def _host(answer: Any) -> str:
    """The host chosen for one server, in whatever form the answer is."""
    if isinstance(answer, dict):
        return str(answer["host"])
    return str(answer[0]["nova_object.data"]["service_host"])
