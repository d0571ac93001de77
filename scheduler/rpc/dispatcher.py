"""From a message to the method that serves it, and from any failure to an answer.

The methods of a topic are those of its endpoints that are exposed, and nothing else (reference page
rpc, 1, 7 and 8).  One endpoint serves one major version: ``target`` says which.

Whatever arrives, the caller gets an answer and the server goes on serving.  The library answers
with the traceback of whatever is raised; here a caller gets class, text and keywords, and never
where it happened.  What went wrong in this service is in the log, under the id that the caller
gets (reference page rpc, sections 2, 5 and 7).
"""

import collections
import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import oslo_messaging
from oslo_log import log as logging
from oslo_utils import versionutils

from scheduler import errors
from scheduler.explain.recorder import identified
from scheduler.rpc.in_flight import CallMonitor, InFlightRequests
from scheduler.rpc.messages import LONGEST_NAME, REFUSED, refusal

LOG = logging.getLogger(__name__)

VERSION_PATTERN: Final = re.compile(r"\d{1,9}\.\d{1,9}(\.\d{1,9})?", re.ASCII)
MISSING_PATTERN: Final = re.compile(r"missing a required.* argument: '(\w+)'")
DEFAULT_VERSION: Final = "1.0"
DEFAULT_TARGET: Final = oslo_messaging.Target()
"""Target of messages without a version and of endpoints without one, as in the library."""

KNOWN_METHODS: Final = 256
"""Methods remembered, each with the version that callers give."""
MOST_PATIENT_SECONDS: Final = 366 * 24 * 3600
SERVER_FAULT_CODE: Final = 500
UNKNOWN_METHOD: Final = "UnknownMethod"
"""The name under which calls of unknown methods, or versions of them, are counted."""
PING: Final = "oslo_rpc_server_ping"
"""The library's own method, which every server has with ``[DEFAULT] rpc_ping_enabled``."""
LOGGED: Final = (errors.NO_HOST_FITS, errors.ATTEMPTS_EXHAUSTED, errors.STATE_TOO_OLD)
"""Codes of refusals that are in the line on the decision already, as faults with an id are."""
NOT_SERVED: Final = (oslo_messaging.NoSuchMethod, oslo_messaging.UnsupportedVersion)
"""There is no such method, or not in this version."""


class ArgumentMismatch(Exception):
    """An argument is missing, unknown or given twice; *reason* names it."""

    def __init__(self, method: Callable[..., Any], reason: str) -> None:
        super().__init__(f"{method.__qualname__}() {reason:.200}")


CALLER_ERRORS: Final = (
    errors.InvalidRequest,
    errors.IncompatibleObjectVersion,
    errors.UnsupportedObjectError,
    ArgumentMismatch,
)
"""The caller's fault: sent back, and one line here instead of a traceback."""


class AccessPolicy(oslo_messaging.ExplicitRPCAccessPolicy):
    """Methods that say that they can be called, and PING, which says nothing."""

    def is_allowed(self, endpoint: Any, method: str) -> bool:
        is_ping = method == PING and hasattr(endpoint, method)
        return is_ping or bool(super().is_allowed(endpoint, method))


class Dispatcher(oslo_messaging.RPCDispatcher):
    """The library's dispatcher behind checks of the form of each message.

    Only methods that say so can be called (``expose``): not one that came in by accident.
    """

    def __init__(self, *args: Any, in_flight: InFlightRequests, monitor: CallMonitor) -> None:
        super().__init__(*args, AccessPolicy)
        self.in_flight = in_flight
        self.monitor = monitor
        #: Callers use few of the methods, in few versions.
        self._serving = functools.lru_cache(KNOWN_METHODS)(self._method)
        self.refused: collections.Counter[str] = collections.Counter()
        """Messages that could not be served, by the name of the error."""

    def dispatch(self, incoming: Any) -> Any:
        """Call the method that *incoming* asks for, and return its serialised result.

        Whatever goes wrong is raised as an ExpectedException: the caller gets class and text.
        """
        message = incoming.message
        try:
            # For the log lines from here on.
            context = incoming.ctxt = self.serializer.deserialize_context(incoming.ctxt)
            if incoming.client_timeout is not None:
                incoming.client_timeout = _patience_seconds(incoming)
            _check_form(message)
            version = message.get("version", DEFAULT_VERSION)
            serving = self._serving(message["method"], message.get("namespace"), version)
            if serving is None:
                # The library says what is missing.  It starts heartbeats to the caller before it
                # looks for the method, and ends them only after a method has run.
                incoming.client_timeout = None
                self.refused[UNKNOWN_METHOD] += 1
                return super().dispatch(incoming)
            request_id = getattr(context, "request_id", None)
            with self.in_flight.request(message["method"], request_id):
                return self._call(serving, incoming)
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets it
            if isinstance(error, CALLER_ERRORS):
                self.refused[type(error).__name__] += 1
            refusal = _answer_to(error, message, incoming.ctxt)
        # This also keeps what it was raised in the midst of from being shown.
        refusal.__cause__ = None
        answer = oslo_messaging.ExpectedException()
        answer.exc_info = (type(refusal), refusal, None)
        raise answer

    def _method(self, name: str, namespace: str | None, version: str) -> Any:
        for endpoint in self.endpoints:
            target = getattr(endpoint, "target", DEFAULT_TARGET)
            if (
                namespace in target.accepted_namespaces
                and versionutils.is_compatible(version, target.version or DEFAULT_VERSION)
                and self.access_policy.is_allowed(endpoint, name)
            ):
                return getattr(endpoint, name)
        return None

    def _call(self, serving: Callable[..., Any], incoming: Any) -> Any:
        context, brought = incoming.ctxt, incoming.message.get("args", {})
        if waits := incoming.client_timeout:
            self.monitor.watch(incoming)
        try:
            arguments = {name: self._read(context, name, brought[name]) for name in brought}
            return self.serializer.serialize_entity(context, serving(context, **arguments))
        except TypeError:
            _require_fit(serving, brought)
            raise
        finally:
            if waits:
                self.monitor.forget(incoming)

    def _read(self, context: Any, name: str, value: Any) -> Any:
        try:
            return self.serializer.deserialize_entity(context, value)
        except errors.NovaException as error:
            raise errors.placed(error, name) from error.__cause__


def _require_fit(method: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Raise an error naming the argument for which *method* cannot be called with *arguments*.

    That is InvalidRequest for one that is missing, and ArgumentMismatch for any other.
    """
    for name in ("self", "context"):
        if name in arguments:
            raise ArgumentMismatch(method, f"got an unexpected keyword argument {name!r}")
    try:
        inspect.signature(method).bind(None, **arguments)
    except TypeError as error:
        if missing := MISSING_PATTERN.search(str(error)):
            raise errors.InvalidRequest(field=missing[1], reason="missing") from None
        raise ArgumentMismatch(method, str(error)) from None


def _patience_seconds(incoming: Any) -> int:
    """Seconds that the caller of a message waits, which the library makes a timer of.

    Raises InvalidRequest for what is no number, or for longer than any caller waits.
    """
    timeout, incoming.client_timeout = incoming.client_timeout, None
    try:
        seconds = int(timeout)
    except (TypeError, ValueError, OverflowError):
        seconds = -1
    if not 0 <= seconds <= MOST_PATIENT_SECONDS:
        raise errors.InvalidRequest(
            field="_timeout", reason=f"{timeout!r:.50} is no number of seconds up to a year"
        )
    return seconds


def _check_form(message: dict[str, Any]) -> None:
    """Raise InvalidRequest unless *message* is a request that the library can handle."""
    if REFUSED in message:
        raise refusal(message[REFUSED])
    if not isinstance(message.get("args", {}), dict):
        raise errors.InvalidRequest(field="args", reason="not a dict of arguments")
    method = message.get("method")
    if not isinstance(method, str) or len(method) > LONGEST_NAME:
        raise errors.InvalidRequest(field="method", reason="no name of a method")
    if not isinstance(message.get("namespace"), str | None):
        raise errors.InvalidRequest(field="namespace", reason="not a text")
    version = message.get("version", DEFAULT_VERSION)
    if not isinstance(version, str) or not VERSION_PATTERN.fullmatch(version):
        raise errors.InvalidRequest(field="version", reason=f"{version!r} is not a version")


def _answer_to(error: Exception, message: Mapping[str, Any], context: Any) -> Exception:
    """The error that the caller of *message* gets instead of *error*, or *error* itself.

    A mistake of the caller is one line in the log; a fault of this service gets an id.
    """
    if isinstance(error, oslo_messaging.ExpectedException):  # of the conductor stub's methods
        return error.exc_info[1]
    if errors.code_of(error) in LOGGED or "fault_id" in getattr(error, "kwargs", ()):
        return error
    method = f"{message.get('method')!s:.100}"
    if isinstance(error, ArgumentMismatch):
        error = TypeError(str(error))  # as Nova's services answer
    elif not isinstance(error, NOT_SERVED) and not _is_refusal(error):
        return identified(error, getattr(context, "request_id", None), method)
    LOG.warning("Refused %s: %s", method, error)
    return error


def _is_refusal(error: BaseException) -> bool:
    """True when *error* says no to what was asked, and nothing went wrong here."""
    if not isinstance(error, errors.NovaException):
        return False
    if errors.code_of(error) != errors.INTERNAL_FAULT:
        return True
    return int(error.kwargs.get("code", error.code)) < SERVER_FAULT_CODE


class SchedulerEndpoint:
    """Version 4.5, which serves every message of 4.0 to 4.5: methods of the *manager*."""

    target = oslo_messaging.Target(version="4.5")
    METHODS: Final = (
        "select_destinations",  # 4.0
        *("update_aggregates", "delete_aggregate"),  # 4.1
        *("update_instance_info", "delete_instance_info", "sync_instance_info"),  # 4.2
    )

    def __init__(self, manager: Any) -> None:
        for name in self.METHODS:
            setattr(self, name, _exposed(getattr(manager, name)))


def _exposed(method: Callable[..., Any]) -> Callable[..., Any]:
    @oslo_messaging.expose
    @functools.wraps(method)
    def call(context: Any, **arguments: Any) -> Any:
        return method(context, **arguments)

    return call


class BaseAPI:
    """The methods of every service of this family: namespace ``baseapi``, version 1.1."""

    target = oslo_messaging.Target(namespace="baseapi", version="1.1")

    def __init__(self, service_name: str) -> None:
        self._service_name = service_name

    @oslo_messaging.expose
    def ping(self, context: Any, arg: Any) -> dict[str, Any]:
        return {"service": self._service_name, "arg": arg}

    @oslo_messaging.expose
    def get_backdoor_port(self, context: Any) -> None:
        """No port of a debugging backdoor: there is none."""
