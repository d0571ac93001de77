"""RPC servers: who answers what on which topic (reference page rpc, sections 7 and 8)."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import oslo_messaging
from oslo_log import log as logging
from oslo_messaging.rpc.server import RPCServer
from oslo_messaging.transport import RPCTransport

from scheduler.rpc import connection, messages, transport
from scheduler.rpc.connection import Deliveries
from scheduler.rpc.context import RequestContextSerializer
from scheduler.rpc.dispatcher import Dispatcher
from scheduler.rpc.fastpath import install as fastpath
from scheduler.rpc.in_flight import CallMonitor, InFlightRequests
from scheduler.rpc.messages import MessageLimits

LOG = logging.getLogger(__name__)

FAST, LIBRARY = "fast", "library"
"""The ways that a request can take from the bus."""
AGAIN_SECONDS = 1.0
"""Pause before a server subscribes once more."""
LOOK_SECONDS = 0.01
"""Pause between two looks whether the library has subscribed."""


class Server(RPCServer):
    """A server for *topic* and for ``topic.host``, not started yet; it stops without a loss.

    *in_flight* counts the requests that are worked on.  What the
    library receives is not the broker's any more, and is lost with the process.  So no more than
    ``executor_thread_pool_size`` are taken at a time.

    Every endpoint has a ``target`` with version and namespace; **each of its methods with
    ``oslo_messaging.expose`` can be called by anyone on the bus**, and nothing else.
    """

    def __init__(
        self,
        bus: RPCTransport,
        topic: str,
        host: str,
        endpoints: Sequence[Any],
        in_flight: InFlightRequests | None = None,
        deliveries: type[Deliveries] = Deliveries,
    ) -> None:
        self._limits = MessageLimits.from_conf(bus.conf)
        self.deliveries = deliveries(self._limits)
        dispatcher = Dispatcher(
            list(endpoints),
            RequestContextSerializer(),
            in_flight=in_flight or InFlightRequests(),
            monitor=CallMonitor(),
        )
        super().__init__(bus, oslo_messaging.Target(topic=topic, server=host), dispatcher)
        self._queue = f"{topic}.{host}"
        self._has_broker = not transport.is_in_process(self.conf)
        wants_fast = self._has_broker and self.conf.scheduler.rpc_fast_path
        self._is_fast = bool(wants_fast) and fastpath.is_possible()
        if self._is_fast:
            fastpath.use_greenlets(self)
        self._fast: fastpath.FastPath | None = None
        self._handed_on = 0
        self._room = threading.Semaphore(self.conf.executor_thread_pool_size)

    def _create_listener(self) -> Any:
        connection.SERVED[self._queue] = self.deliveries
        try:
            listener = super()._create_listener()
        except oslo_messaging.MessageDeliveryFailure as error:
            # A queue may end with its last consumer just before it is bound, and in a cluster
            # another node may not know it yet.
            LOG.info("Subscribing once more: %s", error)
            time.sleep(AGAIN_SECONDS)
            listener = super()._create_listener()
        if self._is_fast:
            self._fast = fastpath.FastPath(listener, self.deliveries, self._limits)
        return Subscription(listener, self.deliveries, self._fast, self._admit)

    def _admit(self, incoming: list[Any]) -> list[Any]:
        """The request, as soon as there is room for it."""
        (message,) = incoming
        # Whatever a sender wrote there is overwritten.
        message.ctxt["arrived_at"] = time.monotonic()
        message.ctxt["is_redelivered"] = bool(message.message.pop(messages.REDELIVERED, False))
        self._room.acquire()
        self._handed_on += 1
        return incoming

    def _process_incoming(self, incoming: Any) -> None:
        """Nobody looks at what comes of it: an error around the dispatcher is logged here."""
        try:
            super()._process_incoming(incoming)
        except Exception:
            LOG.exception("A request could not be handed to the dispatcher, or not be answered")
            incoming[0].reply(failure=sys.exc_info())
        finally:
            self._room.release()

    def serve(self, ending: contextlib.ExitStack) -> None:
        """Subscribe; *ending* learns to take no more requests, and to wait for those in hand."""
        self.start()
        ending.callback(self.wait)
        ending.callback(self.stop)
        while self.is_listening and not self.is_consuming:
            time.sleep(LOOK_SECONDS)  # the library subscribes in a thread of its own

    @property
    def is_listening(self) -> bool:
        """True when requests would be taken from the bus, once it answers."""
        return self.listener is not None and bool(self.listener.is_listening)

    @property
    def is_consuming(self) -> bool:
        return self.is_listening and (not self._has_broker or self.deliveries.is_consuming)

    @property
    def messages(self) -> dict[str, int]:
        """Number of requests, by the way that they took."""
        fast = 0 if self._fast is None else int(self._fast.receiver.taken)
        return {FAST: fast, LIBRARY: max(0, self._handed_on - fast)}

    @property
    def answers_dropped(self) -> int:
        """Number of answers given up because nobody was there to get them."""
        return 0 if self._fast is None else int(self._fast.replies.dropped)


@dataclass
class Subscription:
    """The library's *listener*, which leaves the broker as soon as it is stopped."""

    _listener: Any
    _deliveries: Deliveries
    _fast: fastpath.FastPath | None
    _admit: Callable[[list[Any]], list[Any]]
    is_listening: bool = False

    def start(self, on_incoming: Callable[[list[Any]], None]) -> None:
        """Hand every request from now on to *on_incoming*."""
        self._listener.start(lambda incoming: on_incoming(self._admit(incoming)))
        self.is_listening = True

    def stop(self) -> None:
        """Take no more requests from the bus; all that were taken have been handed on then."""
        self._listener.stop()
        self.is_listening = False
        self._deliveries.end()

    def cleanup(self) -> None:
        """Close the connections; requests have been worked on by now."""
        if self._fast is not None:
            self._fast.replies.close()
        self._listener.cleanup()
