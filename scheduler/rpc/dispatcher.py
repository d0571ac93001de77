"""From a message to the method that serves it, and from any failure to an answer.

The methods of the scheduler's topic are those of the endpoints, and nothing else (reference page
rpc, 1, 7 and 8).  One endpoint serves one major version.  A call goes to the method of the same
name of what is behind the endpoint; whatever else that has stays out of reach.  Versions are those
in which a method appeared.

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
from scheduler.objects import WireObject, older_for
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
    if isinstance(error, oslo_messaging.ExpectedException):
        return error.exc_info[1]
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


# --- the endpoints ---------------------------------------------------------------------------

FORMS: Final[Mapping[str, tuple[type, ...]]] = {
    "request_spec": (dict,),
    "filter_properties": (dict, type(None)),
    "host": (str,),
}
"""Types of arguments below 4.3, where the request is two dicts and no object."""


def forwarded(name: str, to: str = "") -> Any:
    """An RPC method *name* that hands its arguments to the method *to*, by default of its name."""

    @oslo_messaging.expose
    def method(self: _Endpoint, context: Any, **arguments: Any) -> Any:
        return self.call(to or name, context, arguments)

    method.__name__ = name
    return method


class _Endpoint:
    """Hands calls on to *behind*."""

    def __init__(self, behind: Any) -> None:
        self._behind = behind

    def call(self, name: str, context: Any, arguments: dict[str, Any]) -> Any:
        """Call the method *name*, if *arguments* are its own."""
        method = getattr(self._behind, name)
        try:
            return method(context, **arguments)
        except TypeError:
            _require_fit(method, arguments)
            raise


class SchedulerEndpoint(_Endpoint):
    """Version 4.5, which serves every message of 4.0 to 4.5, in front of the manager."""

    target = oslo_messaging.Target(version="4.5")

    @oslo_messaging.expose
    def select_destinations(self, context: Any, **arguments: Any) -> Any:
        """Choose hosts (4.0 to 4.5)."""
        try:
            chosen = self.call("select_destinations", context, arguments)
        except errors.NovaException as error:
            if errors.code_of(error) == errors.INVALID_REQUEST:
                raise
            raise oslo_messaging.ExpectedException() from error  # the manager has logged it
        if arguments.get("return_objects") and (older := older_for(arguments.get("spec_obj"))):
            return [[each.encoded(older) for each in row] for row in chosen]
        return chosen

    update_aggregates = forwarded("update_aggregates")  # 4.1
    delete_aggregate = forwarded("delete_aggregate")  # 4.1
    update_instance_info = forwarded("update_instance_info")  # 4.2
    delete_instance_info = forwarded("delete_instance_info")  # 4.2
    sync_instance_info = forwarded("sync_instance_info")  # 4.2


class _OlderEndpoint(_Endpoint):
    """Methods of both versions from Grizzly to Juno, in front of the older tasks."""

    def call(self, name: str, context: Any, arguments: dict[str, Any]) -> Any:
        """Check the types of arguments before the call; refusals are no errors of this service."""
        try:
            _check_forms(arguments)
            return super().call(name, context, arguments)
        except (errors.NoValidHost, errors.StateUnavailable) as error:
            raise oslo_messaging.ExpectedException() from error

    run_instance = forwarded("run_instance")  # 2.0; ``legacy_bdm_in_spec`` since 2.9
    prep_resize = forwarded("prep_resize")  # 2.0
    select_hosts = forwarded("select_hosts")  # 2.6


class HavanaEndpoint(_OlderEndpoint):
    """Version 2.9, which serves every message of 2.0 to 2.9."""

    target = oslo_messaging.Target(version="2.9")

    select_destinations = forwarded("select_destinations")  # 2.7
    update_service_capabilities = forwarded("update_service_capabilities")  # 2.4
    show_host_resources = forwarded("show_host_resources")  # 2.0

    @oslo_messaging.expose
    def get_backdoor_port(self, context: Any) -> None:
        """No port of a debugging backdoor: there is none (2.5)."""

    @oslo_messaging.expose
    def create_volume(self, context: Any, **arguments: Any) -> None:
        """Nothing: volumes have their own scheduler since Folsom (2.3)."""
        LOG.info("Nothing done for create_volume of %s", arguments.get("volume_id"))

    @oslo_messaging.expose
    def live_migration(self, context: Any, **arguments: Any) -> None:
        """Always refused: no release since Havana sends it, the conductor migrates (2.0)."""
        raise errors.InvalidRequest(
            field="method",
            reason="live_migration is not done by this scheduler; ask the conductor to migrate",
        )


class IcehouseEndpoint(_OlderEndpoint):
    """Version 3.1, for callers that count the attempts themselves."""

    target = oslo_messaging.Target(version="3.1")

    select_destinations = forwarded("select_destinations", to="select_counted_destinations")  # 3.0


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


def _check_forms(arguments: Mapping[str, Any]) -> None:
    """Raise InvalidRequest naming the first of *arguments* that is not of its form."""
    for name, forms in FORMS.items():
        if name in arguments and not isinstance(arguments[name], forms):
            given = type(arguments[name]).__name__
            reason = f"{forms[0].__name__} expected, {given} given"
            raise errors.InvalidRequest(field=name, reason=reason)
    spec = arguments.get("request_spec") or {}
    if not isinstance(spec.get("instance_properties"), Mapping | WireObject | None):
        raise errors.InvalidRequest(
            field="request_spec.instance_properties", reason="a dict is needed"
        )
