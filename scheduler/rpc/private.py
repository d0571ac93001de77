"""Queues of one process, which end with it: of one worker's server, and of one command's replies.

The workers of a daemon share its topic and its name, so that a call reaches any one of them.  Who
wants to ask all of them needs a target of each one's own.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import kombu.exceptions
import oslo_messaging
from oslo_log import log as logging
from oslo_messaging._drivers import common as driver_common
from oslo_messaging._drivers.amqpdriver import AMQPDriverBase, RpcAMQPListener
from oslo_messaging._drivers.base import PollStyleListenerAdapter
from oslo_messaging._drivers.impl_rabbit import Consumer
from oslo_messaging.transport import RPCTransport

from scheduler.afterwards import Afterwards
from scheduler.progress import Progress
from scheduler.rpc.limits import MessageLimits
from scheduler.rpc.listener import UnsubscribingListener
from scheduler.rpc.server import Server, build_server

LOG = logging.getLogger(__name__)

FALLBACK_EXPIRY_SECONDS = 1800
"""For the queue of a process that was killed, where the configuration lets queues live for ever."""


_CLOSING_SECONDS = 2.0


class PrivateListener(UnsubscribingListener):
    """Reads one queue, and deletes it in the end."""

    def __init__(
        self,
        listener: Any,
        afterwards: Afterwards,
        limits: MessageLimits,
        progress: Progress,
        at_most: int,
        consumer: Consumer,
    ) -> None:
        super().__init__(listener, afterwards, limits, progress, at_most)
        self._consumer = consumer

    def cleanup(self) -> None:
        """Delete the queue and close the connection."""
        connection = self._listener._poll_style_listener.conn.connection
        bus = connection.connection
        try:
            if bus.connected:
                self._consumer.queue.delete()
        except (*bus.connection_errors, *bus.channel_errors) as error:
            LOG.info("The queue %s is left to expire: %s", self._consumer.queue_name, error)
        super().cleanup()


class PrivateServer(Server):
    """A server that answers to its own name only, from a queue that expires when it is gone."""

    def _create_listener(self) -> UnsubscribingListener:
        driver, target = self.transport._driver, self._target
        if not isinstance(driver, AMQPDriverBase):
            return super()._create_listener()  # the bus inside this process: no queue outlives it
        connection = driver._get_connection(driver_common.PURPOSE_LISTEN)
        listener = RpcAMQPListener(driver, connection)
        consumer = _consumer(connection, driver._get_exchange(target), target, listener)
        connection.declare_consumer(consumer)
        adapter = PollStyleListenerAdapter(listener, 1, None)
        return self._listening(adapter, PrivateListener, consumer)


def build_private_server(
    transport: RPCTransport, topic: str, name: str, endpoints: Sequence[Any]
) -> Server:
    """A server for ``topic.name`` alone, not started yet; see ``build_server``."""
    return build_server(transport, topic, name, endpoints, kind=PrivateServer)


def require_broker(transport: RPCTransport, retry: int) -> None:
    """Connect, with at most *retry* more attempts; raises what the libraries raise if that fails.

    The library itself tries for ever to listen for the answer to the first call.
    """
    driver = transport._driver
    if isinstance(driver, AMQPDriverBase):
        with driver._get_connection(driver_common.PURPOSE_SEND, retry=retry):
            pass


def close(transport: RPCTransport) -> None:
    """End the use of *transport*, and delete the queue that the answers to its calls came to.

    The library leaves that queue to expire.  While the broker is away nothing can be closed.
    """
    driver = transport._driver
    waiter = getattr(driver, "_waiter", None)
    if waiter is not None:
        waiter._thread_exit_event.set()
        waiter.conn.stop_consuming()
        waiter._thread.join(_CLOSING_SECONDS)
        if waiter._thread.is_alive():
            LOG.info("The queue %s is left to expire", driver._reply_q)
            return
        _delete(driver, driver._reply_q)
    transport.cleanup()


def _delete(driver: AMQPDriverBase, queue: str) -> None:
    try:
        with driver._get_connection(driver_common.PURPOSE_SEND, retry=0) as connection:
            connection.channel.queue_delete(queue)
    except (oslo_messaging.MessagingException, kombu.exceptions.KombuError, OSError) as error:
        LOG.info("The queue %s is left to expire: %s", queue, error)


def _consumer(
    connection: Any, exchange: str, target: oslo_messaging.Target, callback: Any
) -> Consumer:
    """Like the library's own for a server's name, but with a queue that nobody else ever had.

    So a queue of that name which was left, maybe with other arguments, is not in its way.
    """
    key = f"{target.topic}.{target.server}"
    return Consumer(
        exchange_name=exchange,
        queue_name=f"{key}_{uuid.uuid4().hex}",
        routing_key=key,
        type="topic",
        durable=connection.durable,
        exchange_auto_delete=connection.amqp_auto_delete,
        queue_auto_delete=False,
        callback=callback,
        rabbit_ha_queues=connection.rabbit_ha_queues,
        rabbit_queue_ttl=connection.rabbit_transient_queues_ttl or FALLBACK_EXPIRY_SECONDS,
        enable_cancel_on_failover=connection.enable_cancel_on_failover,
        rabbit_quorum_queue=connection.rabbit_quorum_queue,
        rabbit_quorum_queue_config=connection.rabbit_quorum_queue_config,
    )
