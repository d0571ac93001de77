"""The channel on which a server's answers go to RabbitMQ, and what becomes of each of them.

Answers that are ready at the same time leave together.  The broker's confirmations are not waited
for: they are read when the next answer is sent, or a moment later.  Answers that it does not
confirm, or cannot deliver, are sent again by the library.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from struct import pack
from typing import Any, Final, Protocol

import amqp
from amqp import spec
from oslo_log import log as logging

from scheduler import concurrency
from scheduler.rpc.frames import Outbox, has_frame

LOG = logging.getLogger(__name__)

LOOK_SECONDS: Final = 0.05
"""How often confirmations are looked for while no further answer is sent."""
MOST_UNCONFIRMED: Final = 256
"""A broker that is so far behind is waited for, on the library's way."""
CLOSING_SECONDS: Final = 5.0
READ_BYTES: Final = 65536

_MANDATORY: Final = 1
_LIKE_ALL_ANSWERS: Final = amqp.Message(
    priority=0,
    content_type="application/json",
    content_encoding="utf-8",
    application_headers={},
    delivery_mode=2,
)


class Answer(Protocol):
    """What is sent."""

    body: bytes
    reply_q: str

    def send_again(self) -> None:
        """Send it on the library's way; raises what the library does."""


class ReplyChannel:
    """On a connection of *pool*, opened when the first answer is to be sent."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self._lock = threading.Lock()
        self._connection: Any = None
        self._channel: Any = None
        self._outbox: Any = None
        #: Whether somebody is about to send what was put into the outbox.
        self._is_sending = False
        self._sent = 0
        #: Answers that are not confirmed, by their number on this channel; the oldest first.
        self._unconfirmed: dict[int, Answer] = {}
        self._is_looking = False
        self._repeating: set[threading.Thread] = set()

    def send(self, answer: Answer) -> bool:
        """Send *answer*, which is sent again should it be lost; False if the library is to send it.

        The caller may get an answer twice, and drops the second.
        """
        connection = self._connection or self._open()
        if connection is None:
            return False
        try:
            with connection._connection_lock:
                if not self._is_sending:
                    self._read(connection)
                if len(self._unconfirmed) >= MOST_UNCONFIRMED:
                    return False
                is_alone = not self._unconfirmed
                number = self._put(connection, answer)
                if self._is_sending:
                    return True  # whoever sends takes it along
                self._is_sending = True
        except Exception as error:  # noqa: BLE001 - the library's way comes to the same, and mends it
            LOG.debug("An answer goes the long way: %s", error)
            self._give_up(connection)
            return False
        if not is_alone:
            concurrency.let_others_catch_up()
        is_sent = self._is_sent(connection, number, answer)
        self._look_soon()
        return is_sent

    def _is_sent(self, connection: Any, number: int, answer: Answer) -> bool:
        """Send all answers that were put in; whether nobody else is to send *answer*."""
        is_sent = True
        try:
            with connection._connection_lock:
                self._send_all(connection)
        except Exception as error:  # noqa: BLE001 - the library's way comes to the same, and mends it
            LOG.debug("Answers go the long way: %s", error)
            if self._unconfirmed.get(number) is answer:  # another's, if opened anew meanwhile
                is_sent = self._unconfirmed.pop(number, None) is None
            self._give_up(connection)
        return is_sent

    def close(self) -> None:
        """Wait until the broker has all answers, and give the connection back."""
        connection = self._connection
        if connection is not None:
            try:
                with connection._connection_lock:
                    self._send_all(connection)
                    while self._unconfirmed:
                        self._in_order(connection).drain_events(timeout=CLOSING_SECONDS)
                    self._channel.close()
            except Exception as error:  # noqa: BLE001 - what is not confirmed is sent again
                LOG.debug("The channel for answers could not be closed: %s", error)
            self._give_up(connection)
        for thread in list(self._repeating):
            thread.join()

    # --- the channel ---------------------------------------------------------------------

    def _open(self) -> Any:
        with self._lock:
            if self._connection is not None:
                return self._connection
            connection = self._pool.get()
            try:
                with connection._connection_lock:
                    self._channel = self._opened(connection)
            except Exception as error:  # noqa: BLE001 - the library says what is wrong, and mends it
                LOG.debug("No channel for answers can be opened: %s", error)
                self._channel = None
            if self._channel is None:
                self._pool.put(connection)
                return None
            self._outbox, self._is_sending = Outbox(self._channel.connection), False
            self._sent = 0
            self._connection = connection  # from now on others send on it
            return connection

    def _opened(self, connection: Any) -> Any:
        bus = getattr(connection.channel, "connection", None)
        if bus is None or connection.kombu_compression:
            return None
        channel = bus.channel()
        channel.confirm_select()
        channel._confirm_selected = True  # forgotten when an error has it opened anew
        channel.events["basic_ack"].add(self._on_ack)
        channel.events["basic_nack"].add(self._on_nack)
        channel.events["basic_return"].add(self._on_return)
        return channel

    def _in_order(self, connection: Any) -> Any:
        """The bus; raises an error if something has happened to the channel."""
        channel = self._channel
        if self._connection is not connection or not getattr(channel, "connection", None):
            raise ConnectionError("the channel for answers is closed")
        if not channel._confirm_selected:
            raise ConnectionError("the channel for answers was closed by the broker")
        return channel.connection

    def _put(self, connection: Any, answer: Answer) -> int:
        """Have *answer* leave with all others; returns its number."""
        self._in_order(connection)
        key = answer.reply_q.encode()
        flags = _MANDATORY if connection.direct_mandatory_flag else 0
        arguments = b"\0\0\0" + pack("B", len(key)) + key + pack("B", flags)
        self._outbox.put(self._channel, spec.Basic.Publish, arguments, _Content(answer.body))
        self._sent += 1
        self._unconfirmed[self._sent] = answer
        return self._sent

    def _send_all(self, connection: Any) -> None:
        self._is_sending = False
        self._in_order(connection)
        self._outbox.send()

    def _give_up(self, connection: Any) -> None:
        with self._lock:
            if self._connection is not connection:
                return
            bus = getattr(self._channel, "connection", None)
            if bus is not None:
                bus.collect()  # the library connects anew
            self._connection = self._channel = None
            lost, self._unconfirmed = self._unconfirmed, {}
            self._pool.put(connection)
        self._repeat(lost.values())

    # --- confirmations -------------------------------------------------------------------

    def _read(self, connection: Any) -> None:
        """Take what has come; raises an error if something has happened to the channel.

        Only what is there as a whole is taken, as nothing here is to wait.
        """
        bus = self._in_order(connection)
        if not self._unconfirmed:
            return
        transport = bus.transport
        try:
            with transport.having_timeout(0):
                come = transport._quick_recv(READ_BYTES)
        except TimeoutError:
            return
        if not come:
            raise ConnectionError("the broker has closed the connection")
        transport._read_buffer += come
        while has_frame(transport._read_buffer):
            bus.blocking_read()

    def _on_ack(self, number: int, multiple: bool) -> None:
        self._named(number, and_before=multiple)

    def _on_nack(self, number: int, multiple: bool) -> None:
        self._repeat(self._named(number, and_before=multiple))

    def _named(self, number: int, *, and_before: bool) -> list[Answer]:
        """The answers that the broker tells of, which are not waited for any more."""
        if not and_before:
            numbers = [number] if number in self._unconfirmed else []
        else:
            numbers = [each for each in self._unconfirmed if each <= number]
        return [self._unconfirmed.pop(each) for each in numbers]

    def _on_return(self, _error: Any, _exchange: str, queue: str, message: Any) -> None:
        """There is no such queue, maybe not yet; the broker confirms the answer all the same."""
        body = message.body
        if isinstance(body, str):  # the library's channel has decoded it
            body = body.encode()
        for number, answer in self._unconfirmed.items():
            if answer.body == body:
                LOG.debug("There is no queue %s", queue)
                del self._unconfirmed[number]
                self._repeat([answer])
                return

    def _repeat(self, answers: Iterable[Answer]) -> None:
        """Have the library send *answers*, which may take it a while each."""
        for answer in answers:
            thread = threading.Thread(target=self._send_again, args=(answer,), daemon=True)
            self._repeating.add(thread)
            thread.start()

    def _send_again(self, answer: Answer) -> None:
        try:
            answer.send_again()
        except Exception:
            LOG.exception("An answer to %s could not be sent again", answer.reply_q)
        finally:
            self._repeating.discard(threading.current_thread())

    def _look_soon(self) -> None:
        with self._lock:
            if not self._is_looking:
                threading.Thread(target=self._look, name="confirmations", daemon=True).start()
                self._is_looking = True

    def _look(self) -> None:
        """Read confirmations now and then until all answers are confirmed.

        And send what was put in by whoever did not come to send it.
        """
        while True:
            time.sleep(LOOK_SECONDS)
            with self._lock:
                connection = self._connection
                if not self._unconfirmed or connection is None:
                    self._is_looking = False
                    return
            try:
                with connection._connection_lock:
                    self._send_all(connection)
                    self._read(connection)
            except Exception as error:  # noqa: BLE001 - what is not confirmed is sent again
                LOG.debug("Confirmations cannot be read: %s", error)
                self._give_up(connection)


class _Content:
    """What a message is made of: its body, and properties that are the same for all answers."""

    __slots__ = ("body",)

    properties = _LIKE_ALL_ANSWERS.properties
    _serialized = _LIKE_ALL_ANSWERS._serialize_properties()

    def __init__(self, body: bytes) -> None:
        self.body = body

    def _serialize_properties(self) -> bytes:
        return self._serialized
