"""The requests that RabbitMQ brings to one server, on their way to the RPC library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import amqp
from oslo_log import log as logging

from scheduler.rpc import envelope
from scheduler.rpc.message_limits import MessageLimits

LOG = logging.getLogger(__name__)

BROKEN = (*amqp.Connection.connection_errors, *amqp.Connection.channel_errors)
"""What the AMQP library raises over a connection that is gone."""


class Deliveries:
    """Every request of one server: within the limits, marked if it came again, or given back.

    The library stops to read when its server stops, but stays subscribed.  What the broker sends
    then is acknowledged while the connection is closed, and forgotten: its senders wait in vain.
    So this class unsubscribes first, and gives back what is on the way.
    """

    def __init__(self, limits: MessageLimits) -> None:
        self._limits = limits
        self._is_ending = False
        self.undecodable = 0
        """Messages that the library could not read, and dropped with a log line."""
        self.channel: Any = None
        """The channel of the AMQP library that brings requests now."""
        self.client: Any = None
        """The connection of kombu that it belongs to, or the last one did."""
        self.take: Callable[[Any], bool] = _leave
        """Takes a request past the library, if it can; the fast path puts itself here."""

    def received(self, leave: Callable[[Any], None], message: Any) -> None:
        """Take *message* of the AMQP library, or *leave* it to the RPC library."""
        if self._is_ending:
            return  # not acknowledged: the broker gets it back
        self._limits.bound_size(message)
        if self.take(message):
            return
        self._limits.bound_depth(message)
        if message.delivery_info["redelivered"]:
            request = envelope.unpack(message.body)
            if request is not None:
                envelope.replace(message, {**request, envelope.REDELIVERED: True})
        leave(message)

    @property
    def is_consuming(self) -> bool:
        """Whether the broker brings requests now."""
        channel = self.channel
        bus = getattr(channel, "connection", None)
        return bus is not None and bool(bus.connected) and bool(channel.callbacks)

    def end(self) -> None:
        """Leave further requests, and those on the way, to other servers."""
        self._is_ending = True
        if not self.is_consuming:
            return
        try:
            # What comes until the broker has confirmed the end is read and not acknowledged.
            for tag in list(self.channel.callbacks):
                self.channel.basic_cancel(tag)
            self.channel.basic_recover(requeue=True)
        except BROKEN as error:
            # The broker itself gives to others what it has not seen acknowledged.
            LOG.info("Not unsubscribed, because the connection is broken: %s", error)


def _leave(_message: Any) -> bool:
    return False
