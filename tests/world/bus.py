"""The two ends of the bus that a test holds: calls as a Nova service makes them, and raw bytes."""

from __future__ import annotations

import contextlib
import json
import pathlib
import socket
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import kombu
from oslo_config import cfg

from conductor_stub.rpcapi import SchedulerAPI
from scheduler import conf as project_options
from scheduler.rpc import transport as rpc_transport
from scheduler.rpc.context import RequestContext
from tests.world.deployment import render

WIRE = pathlib.Path(__file__).parents[1] / "data" / "wire"
ANSWER_SECONDS = 60


def recorded(name: str) -> dict[str, Any]:
    """The message of a file in ``tests/data/wire``."""
    text = (WIRE / f"{name}.json").read_text(encoding="utf-8")
    message: dict[str, Any] = json.loads(text)["message"]
    return message


def a_context() -> RequestContext:
    """Some caller."""
    return RequestContext(user_id="user", project_id="project")


@contextlib.contextmanager
def scheduler_api(
    folder: pathlib.Path,
    transport_url: str,
    cap: str | None = None,
    response_seconds: int = ANSWER_SECONDS,
    topic: str = "scheduler",
    rabbit: Mapping[str, Any] | None = None,
) -> Iterator[SchedulerAPI]:
    """A client of the schedulers on *transport_url*, capped at the version *cap*.

    *rabbit* are options of ``[oslo_messaging_rabbit]``.

    oslo.messaging reads the process-wide options, so there is one client at a time.
    """
    settings: dict[str, dict[str, Any]] = {
        "DEFAULT": {
            "transport_url": transport_url,
            "scheduler_topic": topic,
            "rpc_response_timeout": response_seconds,
            "long_rpc_timeout": 2 * ANSWER_SECONDS,
        },
        "upgrade_levels": {"scheduler": cap} if cap else {},
        "oslo_messaging_rabbit": dict(rabbit or {}),
        "oslo_concurrency": {"lock_path": str(folder)},
    }
    config = folder / "client.conf"
    config.write_text(render(settings), encoding="utf-8")
    conf = cfg.CONF
    project_options.register_all(conf)
    rpc_transport.set_defaults()
    conf(["--config-file", str(config)], project="nova")
    transport = rpc_transport.get_transport(conf)
    try:
        yield SchedulerAPI(transport, conf)
    finally:
        transport.cleanup()
        conf.reset()


class RawCaller:
    """Publishes bodies of the test's own making and receives replies, without oslo.messaging."""

    def __init__(self, transport_url: str) -> None:
        self._connection = kombu.Connection(transport_url.replace("rabbit:", "amqp:", 1))
        self._channel = self._connection.channel()
        self._queue = kombu.Queue(
            f"reply_{uuid.uuid4().hex}", durable=False, exclusive=True, channel=self._channel
        )
        self._queue.declare()
        self.received: list[dict[str, Any]] = []
        #: Content type, encoding, headers and properties, of each.
        self.dressed: list[tuple[Any, ...]] = []
        self._consumer = kombu.Consumer(
            self._channel, [self._queue], callbacks=[self._received], no_ack=True
        )
        self._consumer.consume()
        self._producer = kombu.Producer(self._channel)

    def __enter__(self) -> RawCaller:
        return self

    def __exit__(self, *_error: object) -> None:
        self._connection.release()

    def delete_queue(self) -> None:
        """Delete the queue that answers come to; what is sent from now on is never answered."""
        self._consumer.cancel()
        self._queue.delete()

    def call(self, message: Mapping[str, Any], routing_key: str = "scheduler") -> dict[str, Any]:
        """Send *message*, with identifiers of this call, and return the reply's message."""
        return self.answer_to(self.send(message, routing_key))

    def send(self, message: Mapping[str, Any], routing_key: str = "scheduler") -> str:
        """Send *message* as a call of its own; returns the identifier of the call."""
        own = self.call_keys()
        self.publish(enveloped({**message, **own}), routing_key=routing_key)
        return own["_msg_id"]

    def call_keys(self) -> dict[str, str]:
        """What a message needs to be a call that is answered here."""
        return {
            "_msg_id": uuid.uuid4().hex,
            "_reply_q": self._queue.name,
            "_unique_id": uuid.uuid4().hex,
        }

    def publish(
        self,
        body: bytes | str,
        content_type: str = "application/json",
        routing_key: str = "scheduler",
        compression: str | None = None,
    ) -> None:
        """Put *body* into the schedulers' queue as it is, or compressed."""
        self._producer.publish(
            body,
            exchange="nova",
            routing_key=routing_key,
            content_type=content_type,
            content_encoding="utf-8",
            compression=compression,
        )

    def waiting_in(self, name: str) -> int:
        """How many messages of the queue *name* nobody has taken yet."""
        queue = kombu.Queue(name, channel=self._channel)
        return int(queue.queue_declare(passive=True).message_count)

    def answer_to(self, call_id: str, timeout_seconds: float = ANSWER_SECONDS) -> dict[str, Any]:
        """Wait for the final reply to a call."""
        deadline = time.monotonic() + timeout_seconds
        while not (found := self.answers_to(call_id)):
            left = deadline - time.monotonic()
            if left <= 0:
                raise AssertionError(f"no answer within {timeout_seconds:g} s")
            with contextlib.suppress(socket.timeout):
                self._connection.drain_events(timeout=left)
        return found[0]

    def answers_to(self, call_id: str) -> list[dict[str, Any]]:
        """The final replies received so far, heartbeats left out."""
        return [each for each in self.received if each["_msg_id"] == call_id and each["ending"]]

    def collect(self, names: Sequence[str]) -> None:
        """From now on keep what is sent to the queues *names* of the exchange ``nova``."""
        exchange = kombu.Exchange("nova", "topic", durable=False)
        for name in names:
            queue = kombu.Queue(name, exchange, name, durable=False, channel=self._channel)
            queue.declare()
            queue.purge()

    def taken_from(self, name: str) -> list[dict[str, Any]]:
        """The messages that have come to a collected queue since the last look."""
        queue = kombu.Queue(name, durable=False, channel=self._channel)
        bodies = iter(lambda: queue.get(no_ack=True), None)
        return [json.loads(json.loads(each.body)["oslo.message"]) for each in bodies]

    def _received(self, body: Any, message: kombu.Message) -> None:
        dress = (message.content_type, message.content_encoding, message.headers)
        self.dressed.append((*dress, message.properties))
        envelope = json.loads(body) if isinstance(body, str | bytes) else body
        self.received.append(json.loads(envelope["oslo.message"]))


def enveloped(message: Mapping[str, Any], version: str = "2.0") -> str:
    """The body of an AMQP message (reference page rpc, section 10)."""
    return json.dumps({"oslo.version": version, "oslo.message": json.dumps(message)})


def failure_of(reply: Mapping[str, Any]) -> dict[str, Any]:
    """The error that a reply carries."""
    assert reply["failure"], f"not an error: {reply}"
    failure: dict[str, Any] = json.loads(reply["failure"])
    return failure
