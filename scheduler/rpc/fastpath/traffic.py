"""Requests off RabbitMQ, and answers to it, without what the library does for each of them.

For each request the library waits for a millisecond, then for two, makes three objects of what came
and copies its context in depth.  What is unusual or beyond a limit, and every error, is left to it:
it says what was dropped, and connects anew.

For each answer the library waits until it is confirmed.  Here answers have a channel of their own,
and confirmations are read with the next answer, or soon after.  What is not confirmed is sent again
on a new channel.  An answer whose queue is not there waits for it: after a broker was restarted the
caller has to declare the queue anew.  The library has the thread of the request wait, so that one
caller who is gone keeps all threads from serving others.
"""

import collections
import os
import threading
import time
from dataclasses import dataclass
from typing import Any, Final

import amqp
from oslo_log import log as logging
from oslo_messaging._drivers import common as driver_common
from oslo_messaging._drivers.amqpdriver import AMQPIncomingMessage, RpcAMQPListener

from scheduler import errors
from scheduler.rpc import messages
from scheduler.rpc.messages import MessageLimits

LOG = logging.getLogger(__name__)

JSON: Final = ("application/json", "utf-8")
WAIT_SECONDS: Final = 1.0  # after which the library looks after a connection that brings nothing
LOOK_SECONDS: Final = 0.05  # between two looks for confirmations while no answer is sent
RETRY_SECONDS: Final = 0.25  # between two tries of a queue that is missing, as the library has it
MOST_UNREAD: Final = 16  # confirmations: the AMQP library reads one with each answer itself
MOST_UNCONFIRMED: Final = 256  # a broker that is so far behind is waited for ...
CONFIRMED_SECONDS: Final = 30.0  # ... that long
MOST_WAITING: Final = 1000  # for missing queues; beyond that the oldest is given up
MOST_TRIED: Final = 32  # of those at a time: 128 messages a second while a busy caller is gone
ENDING_SECONDS: Final = 5.0  # that a server waits for its answers when it ends


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
                return self._library_poll(**limits)
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
            self._limits.check(request)
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


class Request(AMQPIncomingMessage):
    def __init__(self, channel: "ReplyChannel", *arguments: Any) -> None:
        super().__init__(*arguments)
        self._channel = channel

    def reply(self, reply: Any = None, failure: Any = None) -> None:
        """Send the result, or what was raised, unless nobody waits for it."""
        if not self.orig_msg_id:
            return
        if not self._obsolete_reply_queues.reply_q_valid(self.reply_q, self.msg_id):
            self._channel.dropped += 1
            return
        error_text = driver_common.serialize_remote_exception(failure) if failure else None
        message = {"result": reply, "failure": error_text, "ending": True}
        message |= {messages.MESSAGE_ID: self.msg_id, messages.UNIQUE_ID: os.urandom(16).hex()}
        self._channel.send(Answer(self.reply_q, self.msg_id, messages.pack(message)))


@dataclass(eq=False)
class Answer:
    queue: str
    message_id: str
    body: bytes
    until: float | None = None
    """When it is given up, on the monotonic clock; None as long as its queue is not missing."""


class ReplyChannel:
    """The answers of the server with *poller*, of the library."""

    def __init__(self, poller: Any) -> None:
        driver = poller.driver
        self._pool = driver._connection_pool
        self._patience_seconds = driver.missing_destination_retry_timeout
        self._gone = poller._obsolete_reply_queues
        self._opening = threading.Lock()
        self._connection: Any = None
        self._channel: Any = None
        self._openings = 0
        self._numbers = 0
        #: By their numbers on this channel; to be sent again; and those whose queue is missing.
        self._unconfirmed: dict[int, Answer] = {}
        self._keeping = threading.RLock()
        self._again: collections.deque[Answer] = collections.deque()
        self._missing: collections.deque[Answer] = collections.deque()
        self._is_looking = False
        self.dropped = 0
        """Number of answers given up."""

    def send(self, answer: Answer) -> None:
        """Send *answer* as soon as that is possible; the caller drops it if it comes twice."""
        self._post(answer)
        with self._keeping:
            if not self._is_looking:
                self._is_looking = True
                threading.Thread(target=self._look, name="answers", daemon=True).start()

    def close(self) -> None:
        """Wait a while until the broker has all answers, and give the connection back."""
        ends_at = time.monotonic() + ENDING_SECONDS
        while (self._unconfirmed or self._again or self._missing) and time.monotonic() < ends_at:
            time.sleep(LOOK_SECONDS)
        with self._keeping:
            while self._missing:
                self._abandon(self._missing.popleft())
            lost = len(self._again) + len(self._unconfirmed)
            self.dropped += lost
            self._again.clear()
            self._unconfirmed.clear()
        if lost:
            LOG.error("%d answers were not confirmed by the broker", lost)
        self._give_up(self._connection, "the server ends")

    def _post(self, answer: Answer) -> bool:
        """Send *answer*, which is sent again later if that fails; whether it did not."""
        connection = None
        try:
            connection = self._connection or self._open()
            with connection._connection_lock:
                self._in_order(connection)
                if len(self._unconfirmed) >= MOST_UNREAD:
                    self._read(connection)
                while len(self._unconfirmed) >= MOST_UNCONFIRMED:
                    self._in_order(connection).drain_events(timeout=CONFIRMED_SECONDS)
                self._numbers += 1
                self._unconfirmed[self._numbers] = answer
                message = amqp.Message(answer.body, **messages.PROPERTIES)
                is_mandatory = connection.direct_mandatory_flag
                # The channel's own, by the wish of the library's connection, waits to be confirmed.
                amqp.Channel.basic_publish(self._channel, message, "", answer.queue, is_mandatory)
        except Exception as error:  # noqa: BLE001 - whatever it is, a new channel mends it
            self._give_up(connection, error)
            with self._keeping:
                if answer not in self._again:
                    self._again.append(answer)
            return False
        return True

    def _open(self) -> Any:
        with self._opening:
            if self._connection is not None:
                return self._connection
            connection = self._pool.get()
            try:
                bus = getattr(connection.channel, "connection", None)
                if bus is None or not bus.connected:
                    connection.ensure_connection()
                with connection._connection_lock:
                    self._openings = 0
                    self._channel = connection.channel.connection.channel(callback=self._opened)
                    self._channel.confirm_select()
                    for event in ("ack", "nack", "return"):
                        listeners = self._channel.events[f"basic_{event}"]
                        listeners.add(getattr(self, f"_on_{event}"))
            except Exception:
                self._pool.put(connection)
                raise
            self._numbers = 0
            self._connection = connection  # from now on others send on it
            return connection

    def _opened(self, _channel: Any) -> None:
        """Count: after an error the AMQP library opens a channel anew, without confirmations."""
        self._openings += 1

    def _in_order(self, connection: Any) -> Any:
        """The bus; raises an error if something has happened to the channel."""
        bus = getattr(self._channel, "connection", None)
        if self._connection is not connection or bus is None or self._openings != 1:
            raise ConnectionError("the channel for answers was closed")
        return bus

    def _read(self, connection: Any) -> None:
        bus = self._in_order(connection)
        while self._unconfirmed:
            try:
                bus.drain_events(timeout=0)
            except TimeoutError:
                return

    def _give_up(self, connection: Any, reason: Any) -> None:
        """Give *connection* back, and send on another one what was not confirmed."""
        LOG.debug("The channel for answers is given up: %s", reason)
        with self._opening:
            if connection is None or self._connection is not connection:
                return
            channel, self._connection, self._channel = self._channel, None, None
            with self._keeping:
                self._again.extend(self._unconfirmed.values())
                self._unconfirmed = {}
            bus = getattr(channel, "connection", None)
            if bus is not None:
                bus.collect()  # the library connects anew
            self._pool.put(connection)

    def _on_ack(self, number: int, multiple: bool) -> None:
        self._named(number, and_before=multiple)

    def _on_nack(self, number: int, multiple: bool) -> None:
        with self._keeping:
            self._again.extend(self._named(number, and_before=multiple))

    def _named(self, number: int, *, and_before: bool) -> list[Answer]:
        """The answers that the broker tells of, which are not waited for any more."""
        numbers = [each for each in self._unconfirmed if each <= number] if and_before else [number]
        found = (self._unconfirmed.pop(each, None) for each in numbers)
        return [answer for answer in found if answer is not None]

    def _on_return(self, _error: Any, _exchange: str, queue: str, message: Any) -> None:
        """There is no such queue, maybe not yet; the broker confirms the answer all the same."""
        body = message.body
        if isinstance(body, str):  # the AMQP library has decoded it
            body = body.encode()
        for number, answer in self._unconfirmed.items():
            if answer.body == body:
                LOG.debug("There is no queue %s", queue)
                with self._keeping:
                    del self._unconfirmed[number]
                    if answer.until is None:
                        answer.until = time.monotonic() + self._patience_seconds
                    self._missing.append(answer)
                    if len(self._missing) > MOST_WAITING:
                        self._missing.popleft()
                        self.dropped += 1
                        LOG.error("An answer is given up, as too many wait for their queues")
                return

    def _abandon(self, answer: Answer) -> None:
        """Give up *answer* and all others that wait for its queue."""
        others = [each for each in self._missing if each.queue == answer.queue]
        for each in others:
            self._missing.remove(each)
        count = len(others) + 1
        self.dropped += count
        LOG.error(
            "The queue %s did not come back; %d answers to it are given up", answer.queue, count
        )
        self._gone.add(answer.queue, answer.message_id)

    def _try_missing(self) -> None:
        """Send the first few of those whose queues were missing once more, or give them up."""
        for _ in range(min(len(self._missing), MOST_TRIED)):
            with self._keeping:
                if not self._missing:
                    return
                answer = self._missing.popleft()
                is_over = answer.until is not None and time.monotonic() > answer.until
                if is_over:
                    self._abandon(answer)
            if not is_over:
                self._post(answer)

    def _look(self) -> None:
        """Read confirmations now and then, and send again, until all answers are confirmed."""
        tried_at = 0.0
        while True:
            time.sleep(LOOK_SECONDS)
            with self._keeping:
                if not (self._unconfirmed or self._again or self._missing):
                    self._is_looking = False
                    return
            if connection := self._connection:
                try:
                    with connection._connection_lock:
                        self._read(connection)
                except Exception as error:  # noqa: BLE001 - what is not confirmed is sent again
                    self._give_up(connection, error)
            if time.monotonic() - tried_at >= RETRY_SECONDS:
                tried_at = time.monotonic()
                self._try_missing()
                while self._again and self._post(self._again.popleft()):
                    pass
