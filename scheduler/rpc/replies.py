"""How answers get to RabbitMQ: on a short way, or on the library's wherever anything is unusual.

The library looks at a reply's exchange, at its own retries, at the socket's options and twice at
its pool for each reply.  Here a pooled connection that is in order is used as it is, and what was
put off is done between sending the answer and waiting for the broker to confirm it.
"""

from __future__ import annotations

import json
import uuid
from typing import Any, Final

import amqp
from amqp import spec
from amqp.exceptions import MessageNacked
from oslo_log import log as logging
from oslo_messaging._drivers import common as driver_common
from oslo_messaging._drivers.amqp import UNIQUE_ID
from oslo_messaging._drivers.amqpdriver import AMQPIncomingMessage
from oslo_serialization import jsonutils

from scheduler.afterwards import Afterwards
from scheduler.rpc.undelivered import MISSING, Answer, Undelivered

LOG = logging.getLogger(__name__)

_PERSISTENT: Final = 2
_PUBLISH_FORMAT: Final = "Bssbb"
_CONFIRMED: Final = [spec.Basic.Ack, spec.Basic.Nack]


class QuicklyAnswered(AMQPIncomingMessage):
    """A request on RabbitMQ."""

    def __init__(self, afterwards: Afterwards, undelivered: Undelivered, *args: Any) -> None:
        super().__init__(*args)
        self._afterwards = afterwards
        self._undelivered = undelivered

    def reply(self, reply: Any = None, failure: Any = None) -> None:
        """Send the result, or what was raised; returns when the broker has it.

        Where the caller's queue is missing, it returns at once, and the answer waits for the queue.
        """
        if self._is_awaited() and (failure is not None or not self._is_sent(reply)):
            self._send_or_keep(reply, failure)
        self._afterwards.answered()

    def _is_awaited(self) -> bool:
        """Whether the caller wants an answer, as far as is known."""
        if not self.orig_msg_id:
            return False
        is_there: bool = self._obsolete_reply_queues.reply_q_valid(self.reply_q, self.msg_id)
        if not is_there:
            self._undelivered.drop()
        return is_there

    def _send_or_keep(self, reply: Any, failure: Any) -> None:
        """The library's way, except that nobody waits here for a queue that is missing."""
        driver, queue = self.listener.driver, self.reply_q

        def send() -> None:
            with driver._get_connection(driver_common.PURPOSE_SEND) as connection:
                self._send_reply(connection, reply, failure)

        if not self._undelivered.awaits(queue):
            try:
                send()
                return
            except MISSING as error:
                LOG.debug("The queue %s is not there: %s", queue, error)
        answer = Answer(queue, send, lambda: self._obsolete_reply_queues.add(queue, self.msg_id))
        self._undelivered.keep(answer, driver.missing_destination_retry_timeout)

    def _is_sent(self, reply: Any) -> bool:
        """Whether the short way led to the broker; the caller gets an answer once, or twice."""
        if self._undelivered.awaits(self.reply_q):
            return False
        pool = self.listener.driver._connection_pool
        connection = pool.get()
        try:
            channel = connection.channel
            if not _is_in_order(connection, channel):
                return False
            body = _body(reply, self.msg_id)
            with connection._connection_lock:
                self._publish(channel, body, connection.direct_mandatory_flag)
            return True
        except Exception as error:  # noqa: BLE001 - the library's way comes to the same, and mends it
            LOG.debug("The answer to %s goes the long way: %s", self.msg_id, error)
            return False
        finally:
            pool.put(connection)

    def _publish(self, channel: Any, body: str, is_mandatory: bool) -> None:
        message = amqp.Message(
            body,
            priority=0,
            content_type="application/json",
            content_encoding="utf-8",
            application_headers={},
            delivery_mode=_PERSISTENT,
        )
        arguments = (0, "", self.reply_q, is_mandatory, False)
        channel.send_method(spec.Basic.Publish, _PUBLISH_FORMAT, arguments, message)
        self._afterwards.answered()
        channel.wait(_CONFIRMED, callback=_check_confirmation)


def _is_in_order(connection: Any, channel: Any) -> bool:
    """Whether the connection has sent with confirmation before, and still can."""
    return bool(
        channel is not None
        and channel.connection is not None
        and getattr(channel, "_confirm_selected", False)
        and not connection.kombu_compression
    )


def _check_confirmation(method: Any, *_arguments: Any) -> None:
    if method == spec.Basic.Nack:
        raise MessageNacked()


def _body(reply: Any, msg_id: str) -> str:
    """The same envelope as the library's."""
    message = {
        "result": reply,
        "failure": None,
        "ending": True,
        "_msg_id": msg_id,
        UNIQUE_ID: uuid.uuid4().hex,
    }
    return json.dumps(
        {
            driver_common._VERSION_KEY: driver_common._RPC_ENVELOPE_VERSION,
            driver_common._MESSAGE_KEY: _dumped(message),
        }
    )


def _dumped(message: dict[str, Any]) -> str:
    try:
        return json.dumps(message)
    except TypeError:  # something that JSON does not know: the library makes a primitive of it
        return str(jsonutils.dumps(message))
