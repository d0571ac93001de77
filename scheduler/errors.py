"""Every error that may leave this service, in one shallow tree.

The classes report ``nova.exception`` as their module: that is the only module from which a
Nova conductor rebuilds remote exceptions, and so the only way its ``except NoValidHost``
branches fire (reference page rpc, section 5).  ``str()`` is formatted from keyword arguments,
and those travel on the wire together with the numeric ``code``.
"""

import contextlib
import difflib
import functools
import re
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

WIRE_MODULE = "nova.exception"
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")

#: Most characters of what code of a site says of itself.
MOST_CHARACTERS: Final = 200
NO_HOST_FITS: Final = "no_host_fits"
ATTEMPTS_EXHAUSTED: Final = "attempts_exhausted"
STATE_TOO_OLD: Final = "state_too_old"
INVALID_REQUEST: Final = "invalid_request"
INTERNAL_FAULT: Final = "internal_fault"
#: Fates of a request that gets no hosts: codes that stay what they are (docs/explain.md).
CODES: Final = (NO_HOST_FITS, ATTEMPTS_EXHAUSTED, STATE_TOO_OLD, INVALID_REQUEST, INTERNAL_FAULT)

MOST_QUOTED: Final = 500
"""Characters of a caller's text in an error."""


def quoted(value: Any) -> Any:
    """A text of others as it goes into logs and answers: short, and in one line."""
    if type(value) in (int, float, bool, type(None)):
        return value
    text = str(value)
    if not text.isprintable():
        text = text.encode("unicode_escape").decode("ascii")
    return text if len(text) <= MOST_QUOTED else f"{text[:MOST_QUOTED]}…"


def in_one_line(text: str) -> str:
    """*text* with its control characters escaped, line ends too."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def nearest(name: str, known: Iterable[str], similarity: float = 0.6) -> str | None:
    """The one of *known* that is spelt most like *name*; None if none has that *similarity*."""
    by_lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=similarity)
    return by_lower[near[0]] if near else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error about *name*: a question, or nothing."""
    near = nearest(name, known)
    return "" if near is None else f"; did you mean {near}?"


def placed(error: "NovaException", part: str) -> "NovaException":
    """*error* about something inside of *part*; its text then names that place."""
    inner = str(error.kwargs.get("place", ""))
    if len(inner) > MOST_QUOTED:
        return error
    joint = "." if inner and not inner.startswith("[") else ""
    place = quoted(f"{part}{joint}{inner}")
    message = error.format_message().removesuffix(f" (in {inner})")
    twin = type(error)(f"{message} (in {place})", **{**error.kwargs, "place": place})
    twin.__cause__ = error.__cause__
    return twin


def code_of(error: BaseException) -> str:
    """The one of CODES that *error* has; any foreign error is an internal fault."""
    if not isinstance(error, NovaException):
        return INTERNAL_FAULT
    return str(error.kwargs.get("error_code", error.error_code))


class NovaException(Exception):
    """Base of all: ``msg_fmt % kwargs``, or the literal *message* when one is given."""

    __module__ = WIRE_MODULE  # faults of the service are sent as this class
    msg_fmt: ClassVar[str] = "An unknown exception occurred."
    code: ClassVar[int] = 500
    #: One of CODES.
    error_code: ClassVar[str] = INTERNAL_FAULT

    def __init__(self, message: str | None = None, **kwargs: Any) -> None:
        # NoValidHost has exactly the keys of Nova's.
        own = {} if self.error_code == NO_HOST_FITS else {"error_code": self.error_code}
        if self.error_code == INVALID_REQUEST:
            kwargs = {name: quoted(value) for name, value in kwargs.items()}
        self.kwargs = {"code": self.code, **own, **kwargs}
        super().__init__(message if message is not None else self.msg_fmt % self.kwargs)

    def __init_subclass__(cls) -> None:
        cls.__module__ = WIRE_MODULE

    def format_message(self) -> str:
        """The text alone, as Nova's callers ask for it."""
        return str(self.args[0])


class NoValidHost(NovaException):
    """No host fits the request (or not all of its instances: all or nothing)."""

    msg_fmt = "No valid host was found. %(reason)s"
    error_code = NO_HOST_FITS


class MaxRetriesExceeded(NoValidHost):
    msg_fmt = "Exceeded maximum number of retries. %(reason)s"
    error_code = ATTEMPTS_EXHAUSTED


class BadRequest(NovaException):
    """Base: the caller's fault."""

    code = 400
    error_code = INVALID_REQUEST


class InvalidRequest(BadRequest):
    """The request itself is wrong; *field* names the part."""

    msg_fmt = "Invalid request: %(field)s: %(reason)s"


@contextlib.contextmanager
def as_invalid(field: str, *causes: type[Exception]) -> Iterator[None]:
    """Within it one of *causes* becomes an InvalidRequest about *field*, with its text."""
    try:
        yield
    except causes as error:
        raise InvalidRequest(field=field, reason=str(error)) from error


class SchedulerHostFilterNotFound(NovaException):
    msg_fmt = "Scheduler Host Filter %(filter_name)s could not be found."
    code = 404


class ConfigurationError(NovaException):
    """The configuration cannot be used; *option* names the part."""

    msg_fmt = "Invalid configuration: %(option)s: %(reason)s"


class DatabaseUnusable(ConfigurationError):
    """A database cannot be reached or used; *option* names where it is configured."""

    msg_fmt = "%(option)s: %(reason)s"


class StateUnavailable(NovaException):
    """The fleet's state is missing or older than allowed, so no decision can be made."""

    msg_fmt = "The state of the compute hosts is not available: %(reason)s"
    code = 503
    error_code = STATE_TOO_OLD


class ClaimConflict(NovaException):
    """Others claimed the hosts that were chosen, again and again; there may be others still."""

    msg_fmt = "The hosts chosen were claimed by others, %(attempts)d times in a row."
    code = 409
    error_code = ATTEMPTS_EXHAUSTED


class AllocationUpdateFailed(NovaException):
    """Another process changed what an instance has in Placement at the same time."""

    msg_fmt = "Failed to update allocations for consumer %(consumer_uuid)s. Error: %(error)s"
    error_code = ATTEMPTS_EXHAUSTED


class DecisionGivenUp(NovaException):
    """A decision took longer than it may: a filter or weigher of an operator's is too slow."""

    msg_fmt = (
        "The decision was given up after %(seconds)s s ([scheduler] max_decision_seconds): "
        "server %(number)d, %(place)s"
    )
    code = 503


class ExtensionFailed(NovaException):
    """A filter, weigher or driver raised an error, or answered what cannot be used."""

    msg_fmt = "%(name)s failed%(place)s: %(reason)s"

    @classmethod
    def from_error(cls, error: Exception, name: str, host: str = "") -> Self:
        """The error of the class *name* that raised *error*, with the *host* it was asked about."""
        reason = quoted(f"{type(error).__name__}: {error}")[:MOST_CHARACTERS]
        return cls(name=name, place=host and f" on {host}", reason=reason)


class ResourcesNotBooked(NovaException):
    """Base: a host turns out not to have what a guest is to get."""

    msg_fmt = "Resources could not be booked: %(reason)s"


class PciDeviceRequestFailed(ResourcesNotBooked):
    msg_fmt = "PCI device request failed: no free devices serve it."


class NotFound(NovaException):
    """Base: something that the caller names is not there."""

    code = 404


def _error(
    name: str, text: str = "", *, base: type[NovaException] = NovaException, **codes: Any
) -> type[NovaException]:
    """Make the class *name*: its text and codes are those of *base* unless given."""
    return type(name, (base,), {"msg_fmt": text or base.msg_fmt, **codes})


_not_found = functools.partial(_error, base=NotFound)

# A server group's policy needs a filter or weigher that is not configured.
UnsupportedPolicyException = _error(
    "UnsupportedPolicyException", "ServerGroup policy is not supported: %(reason)s", base=BadRequest
)
# Objects on the wire.
IncompatibleObjectVersion = _error(
    "IncompatibleObjectVersion",
    "Version %(objver)s of %(objname)s is not supported, supported version is %(supported)s",
    base=BadRequest,
)
UnsupportedObjectError = _error(
    "UnsupportedObjectError", "Unsupported object type %(objtype)s", base=BadRequest
)
# An unset field was read, or a field got a value it cannot hold.
ObjectActionError = _error(
    "ObjectActionError", "Object action %(action)s failed because: %(reason)s"
)
# Selections are wanted, but the scheduler may only be asked in a version without them.
SelectionObjectsWithOldRPCVersionNotSupported = _error(
    "SelectionObjectsWithOldRPCVersionNotSupported",
    "Selection objects need version 4.5 of the scheduler's RPC, not %(version)s.",
    code=400,
)

# Resources of a host: CPUs to be pinned or given back, memory to be counted in pages, devices.
ComputeResourcesUnavailable = _error(
    "ComputeResourcesUnavailable", "Insufficient compute resources: %(reason)s."
)
CPUPinningUnknown = _error("CPUPinningUnknown", base=ResourcesNotBooked)
CPUPinningInvalid = _error("CPUPinningInvalid", base=ResourcesNotBooked)
HostPagesUnknown = _error("HostPagesUnknown", base=ResourcesNotBooked)
ComputeHostMetricNotFound = _error(
    "ComputeHostMetricNotFound",
    "Metric %(name)s could not be found on the compute host node %(host)s.%(node)s.",
    code=404,
)
# A build failed on its host: it is to be tried on another one, or would fail on any other.
RescheduledException = _error(
    "RescheduledException", "Build of instance %(instance_uuid)s was re-scheduled: %(reason)s"
)
BuildAbortException = _error(
    "BuildAbortException", "Build of instance %(instance_uuid)s aborted: %(reason)s"
)

# A configured path that leads to no class of the right kind; a recorded case, with its place.
ClassNotFound = _error(
    "ClassNotFound", "Class %(class_name)s could not be found: %(exception)s", code=404
)
BadCase = _error("BadCase", "%(place)s: %(reason)s")
UnusableInput = _error("UnusableInput", "%(path)s, line %(line)s: %(reason)s")


def unusable(path: Any, line: int, reason: str | Exception) -> NovaException:
    """UnusableInput about a *line*, or about the whole file where the system cannot read it."""
    if text := getattr(reason, "strerror", None):
        return UnusableInput(f"{path}: {text}")
    return UnusableInput(path=path, line=line, reason=str(reason))


class Faults:
    """Faults of lines of files: raised at once, or noted once where reading is *lenient*."""

    def __init__(self, *, lenient: bool = False) -> None:
        self.lenient = lenient
        self.notes: list[str] = []

    def add(self, path: Any, line: int, reason: str | Exception) -> None:
        """Raise UnusableInput naming file and line, or note that what is there is left out."""
        error = unusable(path, line, reason)
        if not self.lenient:
            raise error
        if str(error) not in self.notes:
            self.notes.append(str(error))


# Tables that are missing, too old, or not this project's to change.
DatabaseNotReady = _error("DatabaseNotReady", "The database is not ready: %(reason)s")
DatabaseReadOnly = _error(
    "DatabaseReadOnly", "Nothing is written to %(url)s: [database] read_only is set"
)

InstanceNotFound = _not_found("InstanceNotFound", "Instance %(instance_id)s could not be found.")
FlavorNotFound = _not_found("FlavorNotFound", "Flavor %(flavor_id)s could not be found.")
AggregateNotFound = _not_found(
    "AggregateNotFound", "Aggregate %(aggregate_id)s could not be found."
)
AggregateHostNotFound = _not_found(
    "AggregateHostNotFound", "Aggregate %(aggregate_id)s has no host %(host)s."
)
ServiceNotFound = _not_found("ServiceNotFound", "Service %(service_id)s could not be found.")
ComputeHostNotFound = _not_found("ComputeHostNotFound", "Compute host %(host)s could not be found.")
InstanceGroupNotFound = _not_found(
    "InstanceGroupNotFound", "Instance group %(group_uuid)s could not be found."
)
AlreadyExists = _error("AlreadyExists", "%(kind)s %(name)s already exists.", code=409)

#: Refusals of flavors and images by the code that they have in Nova's API, under Nova's names.
_REFUSED = {
    400: (
        "InvalidNUMANodesNumber ImageNUMATopologyIncomplete ImageNUMATopologyAsymmetric "
        "ImageNUMATopologyCPUOutOfRange ImageNUMATopologyCPUDuplicates "
        "ImageNUMATopologyCPUsUnassigned ImageNUMATopologyMemoryOutOfRange "
        "MemoryPageSizeInvalid MemoryPageSizeForbidden InvalidCPUAllocationPolicy "
        "InvalidCPUThreadAllocationPolicy CPUThreadPolicyConfigurationInvalid "
        "RealtimeConfigurationInvalid RealtimeMaskNotFoundOrInvalid "
        "InvalidEmulatorThreadsPolicy BadRequirementEmulatorThreadsPolicy "
        "RequiredMixedInstancePolicy RequiredMixedOrRealtimeCPUMask "
        "InvalidMixedInstanceDedicatedMask InvalidPCINUMAAffinity PciInvalidAlias "
        "PciRequestAliasNotDefined"
    ),
    403: (
        "ImageNUMATopologyForbidden ImageCPUPinningForbidden ImageCPUThreadPolicyForbidden "
        "ImagePCINUMAPolicyForbidden"
    ),
}
REFUSALS: Mapping[str, type[NovaException]] = {
    InvalidRequest.__name__: InvalidRequest,
    **{
        name: _error(name, base=InvalidRequest, code=code)
        for code, names in _REFUSED.items()
        for name in names.split()
    },
}


def refused(error: str, key: str, reason: str) -> NovaException:
    """*error* about the flavor's ``hw:<key>``, or the key itself if it has a prefix."""
    name = key if ":" in key else f"hw:{key}"
    return REFUSALS[error](field=f"flavor.extra_specs.{name}", reason=reason)


def image_refused(error: str, key: str, reason: str) -> NovaException:
    """*error* about the image's ``hw_<key>``."""
    return REFUSALS[error](field=f"image.properties.hw_{key}", reason=reason)


@dataclass(frozen=True)
class Fault:
    """A failed build for its user (page conductor, 6); *details*: traceback of a code of 500."""

    code: int
    message: str
    details: str

    @classmethod
    def from_error(cls, error: BaseException) -> Self:
        try:
            code = int(getattr(error, "kwargs", {})["code"])
        except (LookupError, TypeError, ValueError):
            code = 500
        text = message_of(error) or type(error).__name__
        details = "".join(traceback.format_exception(error)) if code == 500 else ""
        return cls(code, text, details)


def message_of(error: BaseException) -> str:
    """The text of *error* without the traceback that errors from remote services carry along."""
    if isinstance(error, NovaException):
        return error.format_message()
    return str(error).partition("\n")[0]
