"""How answers get to RabbitMQ: on a short way, or on the library's wherever anything is unusual.

The library takes a connection out of its pool for each answer, looks at the reply's exchange, at
its own retries and at the socket's options, and waits until the broker has confirmed the answer.
"""

from __future__ import annotations

import json
import os
from typing import Any

from oslo_log import log as logging
from oslo_messaging._drivers import common as driver_common
from oslo_messaging._drivers.amqp import UNIQUE_ID
from oslo_messaging._drivers.amqpdriver import AMQPIncomingMessage
from oslo_serialization import jsonutils

from scheduler.afterwards import Afterwards
from scheduler.rpc.reply_channel import ReplyChannel
from scheduler.rpc.undelivered import MISSING, Answer, Undelivered

LOG = logging.getLogger(__name__)


class QuicklyAnswered(AMQPIncomingMessage):
    """A request on RabbitMQ, which is answered on *channel* and does *afterwards* what can wait."""

    is_redelivered = False
    """Whether the broker had sent it to somebody before."""

    def __init__(
        self, afterwards: Afterwards, undelivered: Undelivered, channel: ReplyChannel, *args: Any
    ) -> None:
        super().__init__(*args)
        self._afterwards = afterwards
        self._undelivered = undelivered
        self._channel = channel
        self._result: Any = None
        self.body = b""

    def reply(self, reply: Any = None, failure: Any = None) -> None:
        """Send the result, or what was raised; it is sent again should it be lost.

        Where the caller's queue is missing, it returns at once, and the answer waits for the queue.
        """
        if self._is_awaited() and (failure is not None or not self._is_sent(reply)):
            self._send_or_keep(reply, failure)
        self._afterwards.answered()

    def send_again(self) -> None:
        """Send the result on the library's way."""
        self._send_or_keep(self._result, None)

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
        """Whether it went the short way."""
        if self._undelivered.awaits(self.reply_q):
            return False
        try:
            self.body = _body(reply, self.msg_id).encode()
        except (TypeError, ValueError) as error:
            LOG.debug("The answer to %s goes the long way: %s", self.msg_id, error)
            return False
        self._result = reply
        return self._channel.send(self)


def _body(reply: Any, msg_id: str) -> str:
    """The same envelope as the library's."""
    message = {
        "result": reply,
        "failure": None,
        "ending": True,
        "_msg_id": msg_id,
        UNIQUE_ID: os.urandom(16).hex(),
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
