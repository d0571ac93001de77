"""From a message to the method that serves it, and from any failure to an answer.

Whatever arrives, the caller gets an answer and the server goes on serving.  The library answers
with the traceback of whatever is raised; here a caller is told class, text and keywords, and never
where it happened.  What went wrong in this service is in the log, under the id that the caller
gets (reference page rpc, sections 2, 5 and 7).
"""

from __future__ import annotations

import collections
import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import oslo_messaging
from oslo_log import log as logging

from scheduler import errors
from scheduler.daemon.in_flight import InFlightRequests
from scheduler.explain.caller_errors import identified
from scheduler.rpc.call_monitor import CallMonitor
from scheduler.rpc.messages import LONGEST_NAME, MessageLimits

LOG = logging.getLogger(__name__)

VERSION_PATTERN: Final = re.compile(r"\d{1,9}\.\d{1,9}(\.\d{1,9})?", re.ASCII)
DEFAULT_VERSION: Final = "1.0"
DEFAULT_TARGET: Final = oslo_messaging.Target()
"""Target of messages without a version and of endpoints without one, as in the library."""

MOST_PATIENT_SECONDS: Final = 366 * 24 * 3600
SERVER_FAULT_CODE: Final = 500
UNKNOWN_METHOD: Final = "UnknownMethod"
"""The name under which calls of unknown methods, or versions of them, are counted."""
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
"""The caller's fault: told to the caller, and one line here instead of a traceback."""


class EndpointPolicy(oslo_messaging.ExplicitRPCAccessPolicy):
    """Only methods that say so can be called (``expose``): not one that came in by accident."""

    def is_allowed(self, endpoint: Any, method: str) -> bool:
        """True when *method* of *endpoint* may be called from outside."""
        return not method.startswith("_") and bool(super().is_allowed(endpoint, method))


class Dispatcher(oslo_messaging.RPCDispatcher):
    """The library's dispatcher behind checks of the form of each message."""

    def __init__(
        self, *args: Any, in_flight: InFlightRequests, limits: MessageLimits, monitor: CallMonitor
    ) -> None:
        super().__init__(*args, EndpointPolicy)
        self.in_flight = in_flight
        self.monitor = monitor
        self._limits = limits
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
                incoming.client_timeout = _patience_seconds(incoming)
            _check_form(message)
            serving = self._method(message)
            if serving is None:
                return self._not_served(incoming)
            request_id = getattr(context, "request_id", None)
            with self.in_flight.request(message["method"], request_id):
                return self._call(serving, incoming)
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller is told
            if isinstance(error, CALLER_ERRORS):
                self.refused[type(error).__name__] += 1
            refusal = _answer_to(error, message, incoming.ctxt)
        raise _alone(refusal)

    def _method(self, message: dict[str, Any]) -> Callable[..., Any] | None:
        name = message["method"]
        for endpoint in self.endpoints:
            target = getattr(endpoint, "target", DEFAULT_TARGET)
            if self.access_policy.is_allowed(endpoint, name) and _accepts(target, message):
                method: Callable[..., Any] = getattr(endpoint, name)
                return method
        return None

    def _call(self, serving: Callable[..., Any], incoming: Any) -> Any:
        context, brought = incoming.ctxt, incoming.message.get("args", {})
        self.monitor.watch(incoming)
        try:
            arguments = {name: self._read(context, name, brought[name]) for name in brought}
            return self.serializer.serialize_entity(context, serving(context, **arguments))
        except TypeError:
            _require_fit(serving, brought)
            raise
        finally:
            self.monitor.forget(incoming)

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


def require(method: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Raise InvalidRequest naming the first argument of *method* that is not in *arguments*.

    Raises ArgumentMismatch naming the first of *arguments* that *method* does not have.
    """
    known, needed = _parameters(getattr(method, "__func__", method))
    for name in needed:
        if name not in arguments:
            raise errors.InvalidRequest(field=name, reason="missing")
    for name in arguments:
        if name not in known:
            raise ArgumentMismatch(method, f"got an unexpected keyword argument {name!r}")


@functools.cache
def _parameters(function: Callable[..., Any]) -> tuple[frozenset[str], tuple[str, ...]]:
    """The names of all that can be given, and of what must be."""
    parameters = dict(inspect.signature(function).parameters)
    for name in ("self", "context"):
        parameters.pop(name, None)
    needed = tuple(name for name, each in parameters.items() if each.default is each.empty)
    return frozenset(parameters), needed


def _require_fit(method: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Raise ArgumentMismatch if *method* of an endpoint cannot be called with *arguments*."""
    for name in ("self", "context"):
        if name in arguments:
            raise ArgumentMismatch(method, f"got an unexpected keyword argument {name!r}")
    try:
        inspect.signature(method).bind(None, **arguments)
    except TypeError as error:
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


def _accepts(target: oslo_messaging.Target, message: dict[str, Any]) -> bool:
    """True when the namespace is the target's and the version not newer than it."""
    if message.get("namespace") not in target.accepted_namespaces:
        return False
    offered, wanted = (
        tuple(int(part) for part in text.split("."))
        for text in (target.version or DEFAULT_VERSION, message.get("version", DEFAULT_VERSION))
    )
    return offered[0] == wanted[0] and wanted[1:] <= (*offered[1:], 0)[: len(wanted) - 1]


def _answer_to(error: Exception, message: Mapping[str, Any], context: Any) -> Exception:
    """The error that the caller of *message* gets instead of *error*, or *error* itself.

    A mistake of the caller is one line in the log; a fault of this service gets an id.
    """
    if isinstance(error, oslo_messaging.ExpectedException):
        known: Exception = error.exc_info[1]
        return known
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


def _alone(error: Exception) -> oslo_messaging.ExpectedException:
    """To be raised where the library is to answer with *error*, and with nothing that led to it."""
    error.__cause__ = None  # which also keeps what it was raised in the midst of from being shown
    answer = oslo_messaging.ExpectedException()
    answer.exc_info = (type(error), error, None)
    return answer
