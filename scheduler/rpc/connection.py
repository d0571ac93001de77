"""Connections to RabbitMQ: verified TLS, heartbeats from a native thread, channels of servers.

The RPC library has kombu connect, which takes the class that its table of transports names: the
one here, made of the public classes of kombu and amqp.
"""

import collections
import contextlib
import functools
import os
import ssl
import weakref
from collections.abc import Callable
from typing import Any, Final

import amqp
import kombu.transport
from kombu.transport import pyamqp
from oslo_log import log as logging

from scheduler import concurrency
from scheduler.rpc import messages
from scheduler.rpc.messages import MessageLimits

LOG = logging.getLogger(__name__)

BROKEN: Final = (*amqp.Connection.connection_errors, *amqp.Connection.channel_errors)
"""Errors that the AMQP library raises over a connection that is gone."""

SCHEME: Final = "amqp"
"""Name that oslo.messaging gives kombu for the transport of ``rabbit://``."""
DEFAULT_HOST: Final = "localhost"

HEARTBEAT_FRAME: Final = b"\x08\x00\x00\x00\x00\x00\x00\xce"
LOOKS_PER_HEARTBEAT: Final = 4
"""With a heartbeat sent after half of its time without any, none is ever late."""
IDLE_SECONDS: Final = 1.0
"""Between two looks while no connection has heartbeats."""

EXPIRY_MS: Final = 1_800_000
"""Of the queue of a process that could not delete it; as the library has it by default."""


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
        self.take: Callable[[Any], bool] = lambda _message: False
        """Takes a request past the library, if it can; the fast path puts itself here."""

    def received(self, leave: Callable[[Any], None], message: Any) -> None:
        """Take *message* of the AMQP library, or *leave* it to the RPC library."""
        if self._is_ending:
            return  # not acknowledged: the broker gets it back
        self._limits.bound_size(message)
        if self.take(message):
            return
        if not self._limits.bound_form(message):
            LOG.warning("A message of %d bytes cannot be read: it is dropped", len(message.body))
            message.channel.basic_reject(message.delivery_tag, requeue=False)
            return
        if message.delivery_info["redelivered"]:
            request = messages.unpack(message.body)
            if request is not None:
                messages.replace(message, {**request, messages.REDELIVERED: True})
        leave(message)

    @property
    def is_consuming(self) -> bool:
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


SERVED: Final[weakref.WeakValueDictionary[str, Deliveries]] = weakref.WeakValueDictionary()
"""The servers of this process, by the name of the queue that only they have."""
TEMPORARY: Final[set[str]] = set()
"""Prefixes of the queues that are to end with their last consumer."""
COPIED: Final[dict[str, str]] = {}
"""By the name of a queue the topic whose requests it gets copies of; see TEMPORARY, too."""
MOST_COPIES: Final = 1000
"""So many wait; the oldest make room."""


class Channel(pyamqp.Channel):
    """A channel that brings requests to the server whose own queue was declared on it."""

    deliveries: Deliveries | None = None

    def queue_declare(self, queue: str = "", *arguments: Any, **options: Any) -> Any:
        """Declare *queue*, one of TEMPORARY such that it ends with its last consumer."""
        if queue in SERVED:
            self.deliveries = SERVED[queue]
            self.deliveries.channel = self
        if queue.startswith(tuple(TEMPORARY)):
            limit = {"x-max-length": MOST_COPIES} if queue in COPIED else {}
            expiry = {"x-expires": EXPIRY_MS, **limit}
            options = {**options, "auto_delete": True, "arguments": expiry}
        return super().queue_declare(queue, *arguments, **options)

    def queue_bind(self, queue: str, exchange: str = "", *arguments: Any, **options: Any) -> Any:
        """Bind *queue*, one of COPIED as the queue of that topic is bound, too."""
        if queue in COPIED:
            super().queue_bind(queue, exchange, COPIED[queue])
        return super().queue_bind(queue, exchange, *arguments, **options)

    def basic_consume(self, *arguments: Any, callback: Any = None, **options: Any) -> Any:
        """Subscribe; what comes goes by the server's limits before *callback* gets it."""
        if self.deliveries is None:
            return super().basic_consume(*arguments, callback=callback, **options)
        pass_on = functools.partial(self.deliveries.received, callback)
        self.connection.is_subscribing = True
        try:
            return super().basic_consume(
                *arguments, callback=functools.partial(self._received, pass_on), **options
            )
        finally:
            if self.connection is not None:
                self.connection.is_subscribing = False

    def _received(self, pass_on: Callable[[Any], None], message: Any) -> None:
        connection = self.connection
        if connection.is_subscribing or connection.early:
            connection.early.append((pass_on, message))
        else:
            pass_on(message)

    def basic_reject(self, delivery_tag: Any, requeue: bool, *arguments: Any) -> Any:
        """Reject a message; one that is not given back is one that the library cannot read."""
        if self.deliveries is not None and not requeue:
            self.deliveries.undecodable += 1
        return super().basic_reject(delivery_tag, requeue, *arguments)


class Connection(pyamqp.Connection):
    """A connection that lives also while this process computes and does nothing else."""

    Channel = Channel

    def __init__(self, *arguments: Any, **options: Any) -> None:
        native = concurrency.native("threading")
        self._writing: Any = native.RLock()
        self._clock = concurrency.native("time").monotonic
        self._written_at = self._clock()
        #: Deliveries that came before the server is subscribed to all its queues.  If one
        #: was acknowledged at once, more and more would pour in from the queue that all share.
        self.early: collections.deque[tuple[Callable[[Any], None], Any]] = collections.deque()
        self.is_subscribing = False
        super().__init__(*arguments, **options)

    def drain_events(self, timeout: float | None = None) -> Any:
        """Deal with what came early, or else with what comes next."""
        if self.early and not self.is_subscribing:
            pass_on, message = self.early.popleft()
            return pass_on(message)
        return super().drain_events(timeout)

    def Transport(self, *arguments: Any, **options: Any) -> Any:  # noqa: N802 - amqp's own hook
        """Make the socket, on which frames of two threads do not mix."""
        transport = super().Transport(*arguments, **options)
        write = transport.write

        def write_alone(data: bytes) -> None:
            with self._writing:
                write(data)
                self._written_at = self._clock()

        transport.write = write_alone
        return transport

    def connect(self, callback: Any = None) -> Any:
        result = super().connect(callback)
        HEARTBEATS.keep(self)
        return result

    def heartbeat_tick(self, rate: int = 2) -> None:
        """Send a heartbeat if it is time; raises an error if the broker has been silent too long.

        The connection is dropped then: to close it the libraries would wait for the broker.
        """
        try:
            super().heartbeat_tick(rate)
        except BROKEN:
            self.collect()
            raise

    def send_late_heartbeat(self) -> None:
        """Send a heartbeat if the library is late with it, which it only is while others compute.

        In a native thread.  The broker's own heartbeats cannot be read then, and count as come.
        """
        late_at = self._written_at + (self.heartbeat or 0) / 2
        if not self.heartbeat or not self.connected or self._clock() < late_at:
            return
        if not self._writing.acquire(blocking=False):
            return  # somebody writes, which is as good
        try:
            self.transport.write(HEARTBEAT_FRAME)
            self.last_heartbeat_received = self._clock()
        finally:
            self._writing.release()


class BrokerHeartbeats:
    """The native thread of a process that keeps all its connections alive.

    Under eventlet nothing but the present computation runs in the main thread; with threads the
    one that receives may wait for room.  Either may take longer than the broker waits.
    """

    def __init__(self) -> None:
        self._pid = 0
        self._kept: dict[int, weakref.ref[Connection]] = {}

    def keep(self, connection: Connection) -> None:
        if self._pid != os.getpid():
            # What a parent process has connected is not ours.
            self._pid, self._kept = os.getpid(), {}
            native = concurrency.native("threading")
            native.Thread(target=self._run, name="heartbeats", daemon=True).start()
        self._kept[id(connection)] = weakref.ref(connection)

    def _run(self) -> None:
        sleep = concurrency.native("time").sleep
        while True:
            seconds = IDLE_SECONDS
            for key, reference in list(self._kept.items()):
                connection = reference()
                if connection is None:
                    self._kept.pop(key, None)
                    continue
                if connection.heartbeat:
                    seconds = connection.heartbeat / LOOKS_PER_HEARTBEAT
                # The library notices by itself that a connection is gone, and logs it.
                with contextlib.suppress(*BROKEN, OSError, AttributeError):
                    connection.send_late_heartbeat()
            sleep(seconds)


HEARTBEATS: Final = BrokerHeartbeats()


class Transport(pyamqp.Transport):
    """TLS to the broker in which the certificate, and the name in it, are always verified.

    The libraries verify the name only with ``ssl_ca_file``; nothing at all with an ``ssl_version``
    and without it; and in a URL of several brokers the name of the first one for all.  What is
    left to them is decided here anew for each connection.
    """

    Connection = Connection

    def establish_connection(self) -> Any:
        """Connect to the broker of this connection's present address."""
        client: Any = self.client
        if client.ssl:
            client.ssl = verifying(client.ssl, client.hostname)
        return super().establish_connection()


def verifying(arguments: dict[str, Any] | bool, host: str | None) -> dict[str, Any]:
    """TLS *arguments* with which only a certificate for *host* is accepted.

    A ``server_hostname`` among them counts before *host*.  Without a file of authorities
    (``ca_certs``) the system's are trusted.
    """
    given = arguments if isinstance(arguments, dict) else {}
    name = given.get("server_hostname") or host or DEFAULT_HOST
    return {**given, "cert_reqs": ssl.CERT_REQUIRED, "server_hostname": name}


def install() -> None:
    """Have kombu connect so from now on, for all that names the transport by its scheme."""
    kombu.transport.TRANSPORT_ALIASES[SCHEME] = f"{__name__}:{Transport.__name__}"
