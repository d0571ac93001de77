"""Requests off RabbitMQ without what the library does for each of them.

For each request the library waits for a millisecond, then for two, makes three objects of what came
and copies its context in depth.  What is unusual or beyond a limit, and every error, is left to it:
it says what was dropped, and connects anew.
"""

from __future__ import annotations

from typing import Any, Final

from oslo_log import log as logging
from oslo_messaging._drivers.amqpdriver import RpcAMQPListener

from scheduler import errors
from scheduler.rpc import messages
from scheduler.rpc.messages import MessageLimits

LOG = logging.getLogger(__name__)

WAIT_SECONDS: Final = 1.0
"""After which the library looks after the connection, until something comes again."""


JSON: Final = ("application/json", "utf-8")


class Receiver:
    """Stands before the *poller* of a server."""

    def __init__(self, poller: RpcAMQPListener, limits: MessageLimits) -> None:
        self._poller = poller
        self._limits = limits
        self._library_poll: Any = poller.poll
        self.taken = 0
        """Number of requests that came this way."""

    def poll(self, **limits: Any) -> list[Any]:
        """Return the next request, in a list; nothing, as the library, once receiving has ended."""
        incoming = self._poller.incoming
        while not incoming:
            if self._poller._shutdown.is_set() or not self._waits():
                found: list[Any] = self._library_poll(**limits)
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
                bus.drain_events(timeout=WAIT_SECONDS)
        except TimeoutError:
            return False
        except Exception as error:  # noqa: BLE001 - whatever it is, a new connection mends it
            LOG.debug("The connection for requests is given up: %s", error)
            bus.collect()  # the library takes notice of that, and of no error that it has not met
            return False
        return True

    def take(self, message: Any) -> bool:
        """Take the request in *message* of the AMQP library, unless anything about it is unusual.

        It is acknowledged first; the broker brings it again should that fail.
        """
        properties = message.properties
        form = properties.get("content_type"), properties.get("content_encoding")
        request = messages.unpack(message.body) if form == JSON else None
        if request is None:
            return False
        try:
            self._limits.check_depth(request)
        except errors.InvalidRequest:
            return False  # which is found out again, and answered
        unique_id = request.pop(messages.UNIQUE_ID, None)
        if unique_id in self._poller.msg_id_cache.prev_msgids:
            return False
        message.channel.basic_ack(message.delivery_tag)
        if message.delivery_info["redelivered"]:
            request[messages.REDELIVERED] = True
        self._poller.msg_id_cache.add(unique_id)
        self._poller.incoming.append(self._incoming(request, unique_id))
        self.taken += 1
        return True

    def _incoming(self, request: dict[str, Any], unique_id: Any) -> Any:
        """The library's form of *request*."""
        poller, prefix = self._poller, messages.CONTEXT_PREFIX
        names = [name for name in request if name.startswith(prefix)]
        context = {name[len(prefix) :]: request.pop(name) for name in names}
        message_id = request.pop(messages.MESSAGE_ID, None)
        reply_queue = request.pop(messages.REPLY_QUEUE, None)
        context["client_timeout"] = client_timeout = request.pop("_timeout", None)
        obsolete, operations = poller._obsolete_reply_queues, poller._message_operations_handler
        sender = message_id, reply_queue, client_timeout
        return poller.message_cls(
            poller, context, request, unique_id, *sender, obsolete, operations
        )
