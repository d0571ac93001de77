"""Where a server gets its requests from, and how it stops to without losing any.

The library stops to read, but stays subscribed until it closes the connection after the last
answer.  Whatever the broker has sent by then is acknowledged while the connection is closed, and
forgotten: its senders wait in vain.  So this project unsubscribes first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from oslo_log import log as logging
from oslo_messaging._drivers.amqpdriver import AMQPListener

from scheduler.afterwards import Afterwards
from scheduler.progress import Progress
from scheduler.rpc import door
from scheduler.rpc.limits import MessageLimits
from scheduler.rpc.receiving import QuickReceiver
from scheduler.rpc.replies import QuicklyAnswered
from scheduler.rpc.reply_channel import ReplyChannel
from scheduler.rpc.undelivered import Undelivered

LOG = logging.getLogger(__name__)


class UnsubscribingListener:
    """A listener of the library, made such that ``stop`` ends its subscriptions."""

    def __init__(
        self,
        listener: Any,
        afterwards: Afterwards,
        limits: MessageLimits,
        progress: Progress,
        at_most: int,
    ) -> None:
        """Whoever answers a request does what was put off *afterwards*.

        What is beyond *limits* is not let in.  *progress* holds what was taken from the bus: one
        request, or several at once while it has less than *at_most*.
        """
        self._listener = listener
        #: Answers that wait for the queues of their callers.
        self.undelivered = Undelivered()
        self._answers: ReplyChannel | None = None
        poller = listener._poll_style_listener
        if isinstance(poller, AMQPListener):
            self._answers = ReplyChannel(poller.driver._connection_pool)
            make = functools.partial(QuicklyAnswered, afterwards, self.undelivered, self._answers)
            poller.message_cls = functools.partial(_held, progress, make)
            for consumer in poller.conn.connection._consumers:
                door.guard(consumer, limits)
            QuickReceiver(poller, limits, lambda: at_most - progress.held).install()
        self._on_incoming: Callable[[list[Any]], None] | None = None

    @property
    def is_listening(self) -> bool:
        """Whether the thread that takes requests from the bus runs; it also waits for the bus."""
        return bool(self._listener._listen_thread.is_alive())

    @property
    def is_consuming(self) -> bool:
        """Whether the bus brings requests now: the thread runs, and is connected."""
        poller = self._listener._poll_style_listener
        if not self.is_listening or not isinstance(poller, AMQPListener):
            return self.is_listening
        return bool(poller.conn.connection.connection.connected)

    def start(self, on_incoming: Callable[[list[Any]], None]) -> None:
        """Hand every request from now on to *on_incoming*."""
        self._on_incoming = on_incoming
        self._listener.start(on_incoming)

    def stop(self) -> None:
        """Take no more requests from the bus; all that were taken have been handed on then."""
        self._listener.stop()
        poller = self._listener._poll_style_listener
        if self._on_incoming is None or not isinstance(poller, AMQPListener):
            return  # nothing was taken yet, or the bus is the one inside this process
        _unsubscribe(poller)
        while poller.incoming:
            self._on_incoming([poller.incoming.pop(0)])

    def stay_connected(self) -> None:
        """Tell the broker that this end lives, while nothing is received."""
        poller = self._listener._poll_style_listener
        if not isinstance(poller, AMQPListener):
            return
        bus = poller.conn.connection.connection
        try:
            if bus.connected:
                bus.connection.send_heartbeat()
        except (*bus.connection_errors, *bus.channel_errors) as error:
            LOG.info("The connection is broken, which the next look for requests mends: %s", error)

    def cleanup(self) -> None:
        """Close the connections; requests must have been worked on by now."""
        if self._answers is not None:
            self._answers.close()
        self.undelivered.wait()
        self._listener.cleanup()


def _held(progress: Progress, make: Callable[..., QuicklyAnswered], *args: Any) -> QuicklyAnswered:
    """The message that *make* makes, which is acknowledged by now, on whichever way it came."""
    message = make(*args)
    progress.hold(message)
    return message


def _unsubscribe(poller: AMQPListener) -> None:
    """Leave further requests to other servers, and receive those that are on the way."""
    connection = poller.conn.connection
    bus = connection.connection
    try:
        if bus.connected:
            # Not connection.reset(), which forgets which queue to delete when it is closed.
            # That for which most is waiting was the last to be subscribed to.
            for consumer, tag in reversed(connection._consumers.items()):
                consumer.cancel(tag)
    except (*bus.connection_errors, *bus.channel_errors) as error:
        # The broker itself gives to others what it has not seen acknowledged.
        LOG.info("Not unsubscribed, because the connection is broken: %s", error)
