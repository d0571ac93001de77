"""How requests come off RabbitMQ: on a short way, or on the library's wherever anything is unusual.

For each request the library waits for a millisecond, then for two, makes three objects of what came
and copies its context in depth.  Here a connection that is in order is read as it is, as much at a
time as has come.  What cannot be read at once or is beyond a limit, and every error, is the
library's: it says what was dropped, and connects anew.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from struct import pack
from typing import Any, Final

from amqp import spec
from oslo_log import log as logging
from oslo_messaging._drivers import common as driver_common
from oslo_messaging._drivers.amqp import UNIQUE_ID
from oslo_messaging._drivers.amqpdriver import RpcAMQPListener

from scheduler import errors
from scheduler.rpc.frames import Outbox, has_frame
from scheduler.rpc.limits import MessageLimits

LOG = logging.getLogger(__name__)

WAIT_SECONDS: Final = 1.0
"""After which the library looks after the connection, until something comes again."""
READ_BYTES: Final = 65536
_CONTEXT: Final = "_context_"
_ENVELOPE: Final = {driver_common._VERSION_KEY, driver_common._MESSAGE_KEY}

_Come = tuple[Any, dict[str, Any]]
"""A message, and the request in it."""


class QuickReceiver:
    """Stands before the *poller* of a server; what is beyond *limits* goes the guarded way.

    *room* tells how many requests may be taken at present.
    """

    def __init__(
        self, poller: RpcAMQPListener, limits: MessageLimits, room: Callable[[], int]
    ) -> None:
        self._poller = poller
        self._limits = limits
        self._room = room
        self._poll: Callable[..., Any] = poller.poll
        self._transport: Any = None
        self._outbox: Any = None
        #: Requests that came together and are not acknowledged yet; None where each is at once.
        self._together: list[_Come] | None = None

    def install(self) -> None:
        """Receive what comes from now on; to be called before the first look for requests."""
        self._poller.poll = self.poll
        consumers = self._poller.conn.connection._consumers
        if consumers:
            # What waits in the queue that all servers share, the library's first one, would pour in
            # while the others are subscribed to: all that comes by then is taken at once.
            shared = next(iter(consumers))
            consumers[shared] = consumers.pop(shared)
        for consumer in consumers:
            if not consumer.rabbit_stream_fanout:
                # What the library subscribes with, also after it has connected anew.
                consumer._callback = functools.partial(self._received, consumer._callback)

    def poll(self, **limits: Any) -> list[Any]:
        """The next request, in a list; like the library's nothing once receiving has ended."""
        incoming = self._poller.incoming
        while not incoming:
            if self._poller._shutdown.is_set() or not self._waits():
                found: list[Any] = self._poll(**limits)
                return found
        return [incoming.pop(0)]

    def _waits(self) -> bool:
        """Receive something; whether that can go on so."""
        connection = self._poller.conn.connection
        bus = getattr(connection.channel, "connection", None)
        if bus is None or not bus.connected or connection._new_tags:
            return False
        try:
            with connection._connection_lock:
                self._read_ahead(bus)
                self._take_together(bus)
        except TimeoutError:
            return False
        except Exception as error:  # noqa: BLE001 - whatever it is, a new connection mends it
            LOG.debug("The connection for requests is given up: %s", error)
            bus.collect()  # the library takes notice of that, and of no error that it has not met
            return False
        return True

    def _read_ahead(self, bus: Any) -> None:
        """Have *bus* take all that has come from the socket, and not frame by frame."""
        transport = bus.transport
        if transport is self._transport:
            return
        self._transport, self._outbox = transport, Outbox(bus)
        read = getattr(transport, "_quick_recv", None)
        if read is not None:
            transport._quick_recv = lambda count: read(max(count, READ_BYTES))

    def _take_together(self, bus: Any) -> None:
        """Wait for a request, and take with it those that have come as a whole.

        All of them are acknowledged at once, and none is worked on should that fail.
        """
        together: list[_Come] = []
        self._together = together
        room = self._room()
        try:
            bus.drain_events(timeout=WAIT_SECONDS)
            while len(together) < room and has_frame(bus.transport._read_buffer):
                bus.blocking_read()
        finally:
            self._together = None
            self._acknowledge(together)

    def _acknowledge(self, together: list[_Come]) -> None:
        for message, _request in together:
            arguments = pack(">QB", message.delivery_tag, 0)
            self._outbox.put(message.channel, spec.Basic.Ack, arguments)
        self._outbox.send()
        for message, request in together:
            unique_id = request.get(UNIQUE_ID)
            if self._came_before(unique_id):  # a moment ago: with the same write
                LOG.warning("A request that came twice is dropped: %s", unique_id)
            else:
                self._take(message, request)

    def _received(self, leave: Callable[[Any], None], message: Any) -> None:
        """Take *message*, or *leave* it to the library."""
        request = self._request(message)
        if request is None:
            leave(message)
            return
        if self._together is not None:
            self._together.append((message, request))
            return
        try:
            message.channel.basic_ack(message.delivery_tag)
        except Exception as error:  # noqa: BLE001 - the broker will bring it again
            LOG.warning("Discarding RPC request due to failed acknowledge: %s", error)
            return
        self._take(message, request)

    def _request(self, message: Any) -> dict[str, Any] | None:
        """What is in *message*, unless anything about it is unusual."""
        if len(message.body) > self._limits.most_bytes:
            return None
        text = _text(message)
        if text is None:
            return None
        request = _opened(text)
        if request is None or self._came_before(request.get(UNIQUE_ID)):
            return None
        if text.count("{") + text.count("[") > self._limits.most_levels:
            try:
                self._limits.check_depth(request)
            except errors.InvalidRequest:
                return None  # which the library's way finds out, too, and answers
        return request

    def _came_before(self, unique_id: Any) -> bool:
        return unique_id in self._poller.msg_id_cache.prev_msgids

    def _take(self, message: Any, request: dict[str, Any]) -> None:
        poller = self._poller
        unique_id = request.pop(UNIQUE_ID, None)
        poller.msg_id_cache.add(unique_id)
        names = [name for name in request if name.startswith(_CONTEXT)]
        context = {name[len(_CONTEXT) :]: request.pop(name) for name in names}
        msg_id, reply_queue = request.pop("_msg_id", None), request.pop("_reply_q", None)
        context["client_timeout"] = client_timeout = request.pop("_timeout", None)
        incoming = poller.message_cls(
            poller,
            context,
            request,
            unique_id,
            msg_id,
            reply_queue,
            client_timeout,
            poller._obsolete_reply_queues,
            poller._message_operations_handler,
        )
        if message.delivery_info.get("redelivered"):
            incoming.is_redelivered = True
        poller.incoming.append(incoming)


def _text(message: Any) -> str | None:
    """The text of the request in *message*, if it is wrapped as the library of today wraps it."""
    properties = message.properties
    if (
        properties.get("content_type") != "application/json"
        or properties.get("content_encoding") != "utf-8"
        or "compression" in (properties.get("application_headers") or {})
    ):
        return None
    body = message.body
    try:
        # The library's channel has decoded it by now, unless that failed.
        envelope = json.loads(body if isinstance(body, str) else bytes(body).decode())
    except (ValueError, TypeError, RecursionError):
        return None  # of which the library tells
    if not isinstance(envelope, dict) or envelope.keys() != _ENVELOPE:
        return None
    if envelope[driver_common._VERSION_KEY] != driver_common._RPC_ENVELOPE_VERSION:
        return None
    text = envelope[driver_common._MESSAGE_KEY]
    return text if isinstance(text, str) else None


def _opened(text: str) -> dict[str, Any] | None:
    """The request of that *text*."""
    try:
        request = json.loads(text)
    except (ValueError, RecursionError):
        return None  # of which the library tells
    return request if isinstance(request, dict) else None
