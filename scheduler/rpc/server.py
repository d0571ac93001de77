"""RPC servers: who answers what on which topic (reference page rpc, sections 7 and 8)."""

from __future__ import annotations

import collections
import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import oslo_messaging
from oslo_log import log as logging
from oslo_messaging.rpc.server import RPCServer

from scheduler import concurrency, errors
from scheduler.daemon.in_flight import Progress
from scheduler.rpc import arguments as given
from scheduler.rpc import connection, envelope, failures, transport
from scheduler.rpc.call_monitor import CallMonitor, Signs
from scheduler.rpc.deferred_work import DeferredWork
from scheduler.rpc.deliveries import Deliveries
from scheduler.rpc.fastpath import install as fastpath
from scheduler.rpc.message_limits import LONGEST_NAME, MessageLimits
from scheduler.rpc.serializer import ObjectSerializer, RequestContextSerializer

LOG = logging.getLogger(__name__)

VERSION_PATTERN: Final = re.compile(r"\d{1,9}\.\d{1,9}(\.\d{1,9})?", re.ASCII)

MOST_REMEMBERED: Final = 100
"""Versions can be spelt in many ways."""

DEFAULT_VERSION: Final = "1.0"
DEFAULT_TARGET: Final = oslo_messaging.Target()
"""What the library assumes of messages without a version and of endpoints without a target."""

UNKNOWN_METHOD: Final = "UnknownMethod"
"""Under which calls of methods, or versions of them, are counted that are not there."""

FAST, LIBRARY = "fast", "library"
"""The ways that a request can take from the bus."""

CALLER_ERRORS: Final = (
    errors.InvalidRequest,
    errors.IncompatibleObjectVersion,
    errors.UnsupportedObjectError,
    failures.ArgumentMismatch,
)
"""The caller's fault: told to the caller, and one line here instead of a traceback."""


class BaseAPI:
    """What every service of this family answers: namespace ``baseapi``, version 1.1."""

    target = oslo_messaging.Target(namespace="baseapi", version="1.1")

    def __init__(self, service_name: str, backdoor_port: int | None = None) -> None:
        self._service_name = service_name
        self._backdoor_port = backdoor_port

    @oslo_messaging.expose
    def ping(self, context: Any, arg: Any) -> dict[str, Any]:
        """Show that the service is there."""
        del context
        return {"service": self._service_name, "arg": arg}

    @oslo_messaging.expose
    def get_backdoor_port(self, context: Any) -> int | None:
        """The port of the debugging backdoor; None when there is none."""
        del context
        return self._backdoor_port


class Dispatcher(oslo_messaging.RPCDispatcher):
    """The library's dispatcher behind a look at the form of the message.

    Whatever arrives, the caller gets an answer and the server goes on serving.
    """

    def __init__(
        self, *args: Any, progress: Progress, limits: MessageLimits, monitor: CallMonitor
    ) -> None:
        super().__init__(*args)
        self.progress = progress
        self._limits = limits
        self._monitor = monitor
        self._served: dict[tuple[Any, ...], Callable[..., Any]] = {}
        """By method, namespace and version what was asked for and is there."""
        self.refused: collections.Counter[str] = collections.Counter()
        """Messages that could not be served, by the name of the error."""

    def dispatch(self, incoming: Any) -> Any:
        """Call the method that *incoming* asks for, and return its serialised result.

        Whatever goes wrong is raised as an ExpectedException: the caller is told class and text.
        """
        message = incoming.message
        try:
            self._limits.refuse(message)
            # For the log lines from here on.
            context = incoming.ctxt = self.serializer.deserialize_context(incoming.ctxt)
            if incoming.client_timeout is not None:
                incoming.client_timeout = given.patience_seconds(incoming)
            serving = self._serving(message)
            method = str(message.get("method"))
            with self.progress.request(method, getattr(context, "request_id", None)):
                if serving is None:
                    return self._not_served(incoming)
                return self._call(serving, incoming)
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller is told
            if isinstance(error, CALLER_ERRORS):
                self.refused[type(error).__name__] += 1
            told = failures.told(error, message, incoming.ctxt)
        raise failures.alone(told)

    def _call(self, serving: Callable[..., Any], incoming: Any) -> Any:
        context, decode = incoming.ctxt, self._read
        brought = incoming.message.get("args", {})
        self._monitor.watch(incoming)
        try:
            arguments = {name: decode(context, name, value) for name, value in brought.items()}
            return self.serializer.serialize_entity(context, serving(context, **arguments))
        except TypeError:
            given.require_fit(serving, brought)
            raise
        finally:
            self._monitor.forget(incoming)

    def _read(self, context: Any, name: str, value: Any) -> Any:
        try:
            return self.serializer.deserialize_entity(context, value)
        except errors.NovaException as error:
            raise errors.placed(error, name) from error.__cause__

    def _not_served(self, incoming: Any) -> Any:
        """Let the library say what is missing."""
        # It starts heartbeats to the caller before it looks for the method, and ends them only
        # after a method has run.
        incoming.client_timeout = None
        self.refused[UNKNOWN_METHOD] += 1
        return super().dispatch(incoming)

    def _serving(self, message: dict[str, Any]) -> Callable[..., Any] | None:
        """The method for *message*, if there is one; raises InvalidRequest if it is no request."""
        if not isinstance(message.get("args", {}), dict):
            raise errors.InvalidRequest(field="args", reason="not a dict of arguments")
        wanted = tuple(message.get(key) for key in ("method", "namespace", "version"))
        try:
            known = self._served.get(wanted)
        except TypeError:
            known = None
            LOG.debug("A method, namespace or version that is no text")
        if known is not None:
            return known
        _check_form(message)
        found = self._offered(message)
        if found is not None and len(self._served) < MOST_REMEMBERED:
            self._served[wanted] = found
        return found

    def _offered(self, message: dict[str, Any]) -> Callable[..., Any] | None:
        for endpoint in self.endpoints:
            if self.access_policy.is_allowed(endpoint, message["method"]) and _accepts(
                getattr(endpoint, "target", DEFAULT_TARGET), message
            ):
                method: Callable[..., Any] = getattr(endpoint, message["method"])
                return method
        return None


class EndpointPolicy(oslo_messaging.ExplicitRPCAccessPolicy):
    """Only methods that say so can be called (``expose``): not one that came in by accident."""

    def is_allowed(self, endpoint: Any, method: str) -> bool:
        """Whether *method* of *endpoint* may be called from outside."""
        return not method.startswith("_") and bool(super().is_allowed(endpoint, method))


class Server(RPCServer):
    """The library's server, which in addition loses no request when it stops.

    And it takes no more of them than it works on: what the library receives is not the broker's
    any more, and is lost with the process.  ``executor_thread_pool_size`` are in hand at most.
    """

    def __init__(
        self,
        bus: Any,
        target: oslo_messaging.Target,
        dispatcher: Dispatcher,
        deferred: DeferredWork,
        deliveries: Deliveries,
    ) -> None:
        super().__init__(bus, target, dispatcher)
        self._queue = f"{target.topic}.{target.server}"
        self._limits = MessageLimits.from_conf(self.conf)
        self._deliveries = deliveries
        self._has_broker = not transport.is_in_process(self.conf)
        is_fast = self._has_broker and self.conf.scheduler.rpc_fast_path and fastpath.is_possible()
        self._is_fast = bool(is_fast)
        if self._is_fast:
            fastpath.use_greenlets(self)
        self._fast: fastpath.FastPath | None = None
        self._handed_on = 0
        self._room = threading.Semaphore(self.conf.executor_thread_pool_size)
        #: What requests put off until they are answered.
        self.deferred = deferred

    def _create_listener(self) -> Any:
        connection.SERVED[self._queue] = self._deliveries
        listener = super()._create_listener()
        if self._is_fast:
            self._fast = fastpath.FastPath(listener, self._deliveries, self._limits)
        return Subscription(listener, self._deliveries, self._fast)

    def _on_incoming(self, incoming: Any) -> None:
        (message,) = incoming
        self.dispatcher.progress.hold(message)
        # Whatever a sender wrote there is overwritten.
        message.ctxt["arrived_at"] = time.monotonic()
        message.ctxt["is_redelivered"] = bool(message.message.pop(envelope.REDELIVERED, False))
        self._room.acquire()
        self._handed_on += 1
        super()._on_incoming(incoming)

    def _process_incoming(self, incoming: Any) -> None:
        (message,) = incoming
        try:
            with self.deferred.until_answered():
                super()._process_incoming(incoming)
        finally:
            self._room.release()
            self.dispatcher.progress.release(message)

    @property
    def is_listening(self) -> bool:
        """Whether requests would be taken from the bus, once it answers."""
        return self.listener is not None and bool(self.listener.is_listening)

    @property
    def is_consuming(self) -> bool:
        """Whether the bus brings requests now."""
        return self.is_listening and (not self._has_broker or self._deliveries.is_consuming)

    @property
    def refused(self) -> dict[str, int]:
        """How many messages could not be served, by the error that their senders were told."""
        return dict(self.dispatcher.refused)

    @property
    def messages(self) -> dict[str, int]:
        """How many requests came, by the way that they took."""
        fast = 0 if self._fast is None else int(self._fast.receiver.taken)
        return {FAST: fast, LIBRARY: max(0, self._handed_on - fast)}

    @property
    def undecodable(self) -> int:
        """How many messages nobody could make anything of."""
        return self._deliveries.undecodable

    @property
    def answers_dropped(self) -> int:
        """How many answers were given up because nobody was there to get them."""
        return 0 if self._fast is None else int(self._fast.replies.dropped)


class Subscription:
    """The library's *listener*, which leaves the broker as soon as it is stopped."""

    def __init__(
        self, listener: Any, deliveries: Deliveries, fast: fastpath.FastPath | None
    ) -> None:
        self._listener = listener
        self._deliveries = deliveries
        self._fast = fast
        self.is_listening = False

    def start(self, on_incoming: Callable[[list[Any]], None]) -> None:
        """Hand every request from now on to *on_incoming*."""
        self._listener.start(on_incoming)
        self.is_listening = True

    def stop(self) -> None:
        """Take no more requests from the bus; all that were taken have been handed on then."""
        self._listener.stop()
        self.is_listening = False
        self._deliveries.end()

    def cleanup(self) -> None:
        """Close the connections; requests have been worked on by now."""
        if self._fast is not None:
            self._fast.replies.close()
        self._listener.cleanup()


def build_server(
    transport: oslo_messaging.transport.RPCTransport,
    topic: str,
    host: str,
    endpoints: Sequence[Any],
    progress: Progress | None = None,
    entities: oslo_messaging.NoOpSerializer | None = None,
    deferred: DeferredWork | None = None,
) -> Server:
    """A server for *topic* and for ``topic.host``, not started yet.

    *progress* is told of every request that is worked on; *entities* decodes arguments; what is
    put off with *deferred* is done when a request is answered.

    Every endpoint has a ``target`` with version and namespace; **each of its methods with
    ``oslo_messaging.expose`` can be called by anyone on the bus**, and nothing else.
    """
    serializer = RequestContextSerializer(entities or ObjectSerializer())
    limits = MessageLimits.from_conf(transport.conf)
    deliveries = Deliveries(limits)
    dispatcher = Dispatcher(
        list(endpoints),
        serializer,
        EndpointPolicy,
        progress=progress or Progress(),
        limits=limits,
        monitor=CallMonitor(Signs(deliveries)),
    )
    target = oslo_messaging.Target(topic=topic, server=host)
    return Server(transport, target, dispatcher, deferred or deferred_work(), deliveries)


def deferred_work() -> DeferredWork:
    """What requests put off until they are answered: only greenlets do."""
    return DeferredWork(waits=concurrency.current() == concurrency.EVENTLET)


def _check_form(message: dict[str, Any]) -> None:
    """Raise InvalidRequest unless *message* is a request that the library can handle."""
    method = message.get("method")
    if not isinstance(method, str) or len(method) > LONGEST_NAME:
        raise errors.InvalidRequest(field="method", reason="no name of a method")
    if not isinstance(message.get("namespace"), str | None):
        raise errors.InvalidRequest(field="namespace", reason="not a text")
    version = message.get("version", DEFAULT_VERSION)
    if not isinstance(version, str) or not VERSION_PATTERN.fullmatch(version):
        raise errors.InvalidRequest(field="version", reason=f"{version!r} is not a version")


def _accepts(target: oslo_messaging.Target, message: dict[str, Any]) -> bool:
    """Whether the namespace is the target's and the version not newer than it."""
    if message.get("namespace") not in target.accepted_namespaces:
        return False
    offered, wanted = (
        tuple(int(part) for part in text.split("."))
        for text in (target.version or DEFAULT_VERSION, message.get("version", DEFAULT_VERSION))
    )
    return offered[0] == wanted[0] and wanted[1:] <= (*offered[1:], 0)[: len(wanted) - 1]
