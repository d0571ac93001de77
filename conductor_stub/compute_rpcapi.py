"""Casts to compute hosts, in the version that the hosts understand.

Reference page conductor, section 8.  A version is a (major, minor) pair of numbers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import oslo_messaging as messaging
from oslo_config import cfg

from conductor_stub.releases import versions_of
from conductor_stub.wire_objects import network_tuples
from scheduler import errors, objects
from scheduler.db import services
from scheduler.db.database import Database
from scheduler.rpc.client import client
from scheduler.rpc.context import RequestContext

Version = tuple[int, int]
TOPIC = "compute"
OPTION = "[upgrade_levels] compute"
AUTO = "auto"


def _version(text: str) -> Version:
    major, minor = text.split(".")
    return int(major), int(minor)


def _table(text: str) -> dict[str, Version]:
    """Read ``name@version`` rows."""
    rows = (row.split("@") for row in text.split())
    return {name: _version(version) for name, version in rows}


ALIASES = _table(
    "icehouse@3.23 juno@3.35 kilo@4.0 liberty@4.5 mitaka@4.11 newton@4.13 ocata@4.13 pike@4.17"
    " queens@5.0 rocky@5.0 stein@5.1 train@5.3 ussuri@5.11 victoria@5.12 wallaby@6.0 xena@6.0"
    " yoga@6.0 zed@6.1 antelope@6.2 bobcat@6.2 caracal@6.3 dalmatian@6.3 epoxy@6.4 flamingo@6.4"
    " gazpacho@6.5 hibiscus@6.5"
)
RELEASES = _table(
    "2025.1@6.4 2024.1@6.3 2023.1@6.2 Zed@6.1 Wallaby@6.0 Victoria@5.12 Ussuri@5.11 Train@5.3"
    " Stein@5.1 Queens@5.0 Pike@4.17 Newton@4.13 Mitaka@4.11 Liberty@4.5 Kilo@0.0"
)
"""The release whose objects a host of a version reads, newest first; newer hosts read ours."""
NEWEST: Version = (6, 5)

BY_SERVICE_VERSION = _table("56@6.0 30@5.0 22@4.17 15@4.13 9@4.11 0@4.5")
"""Lowest ``services.version`` of nova-compute to the version that those computes understand.

Only the releases that the database page numbers; one between two counts as the older one.
"""


@dataclass(frozen=True)
class Method:
    """One method: the versions with arguments of their own, newest first.

    ``since`` and ``until`` are the versions that brought or removed an argument.  ``older`` has
    the version from which an argument has its form of today, and a function to the form before.
    """

    versions: tuple[Version, ...]
    since: Mapping[str, Version] = field(default_factory=dict)
    until: Mapping[str, Version] = field(default_factory=dict)
    older: Mapping[str, tuple[Version, Callable[[Any], Any]]] = field(default_factory=dict)

    def arguments(self, given: Mapping[str, Any], version: Version) -> dict[str, Any]:
        """The arguments *given* in the forms of *version*."""
        arguments = {k: v for k, v in given.items() if version >= self.since.get(k, version)}
        for name, (first, form) in self.older.items():
            if version < first:
                arguments[name] = form(arguments[name])
        arguments.update((name, None) for name, end in self.until.items() if version < end)
        return arguments


def _plain_flavor(properties: dict[str, Any]) -> dict[str, Any]:
    if "instance_type" not in properties:
        return properties
    return {**properties, "instance_type": objects.to_plain(properties["instance_type"])}


def _without_numa(limits: dict[str, Any]) -> dict[str, Any]:
    # Hosts before 3.40 know a form of NUMA limits that says more than a scheduler notes now.
    return {name: value for name, value in limits.items() if name != "numa_topology"}


def _method(versions: str, *, since: str = "", until: str = "", **older: Any) -> Method:
    numbers = tuple(map(_version, versions.split()))
    return Method(numbers, _table(since), _table(until), older)


METHODS: Mapping[str, Method] = {
    "build_and_run_instance": _method(
        "6.0 5.11 5.0 4.19 4.0 3.40 3.36 3.33 3.23",
        since="host_list@4.19 accel_uuids@5.11",
        filter_properties=((3, 36), _plain_flavor),
        requested_networks=((3, 33), network_tuples),
        limits=((3, 40), _without_numa),
    ),
    "terminate_instance": _method("6.0 5.0 4.0 3.22", until="reservations@5.0"),
    "prep_resize": _method(
        "6.0 5.1 5.0 4.21 4.18 4.1 4.0",
        since="clean_shutdown@4.1 migration@4.18 host_list@4.21",
        until="reservations@5.0",
        flavor=((4, 1), objects.to_plain),
    ),
    "confirm_resize": _method("6.0 5.0 4.0", until="reservations@5.0"),
    "unshelve_instance": _method("6.0 5.13 5.2 5.0 4.0", since="request_spec@5.2 accel_uuids@5.13"),
    "rebuild_instance": _method(
        "6.0 5.12 5.0 4.22 4.5", since="request_spec@4.22 accel_uuids@5.12"
    ),
}
SPEC_OBJECTS: Mapping[str, Version] = {"build_and_run_instance": (5, 0), "prep_resize": (5, 1)}
"""The version from which a method takes the request as an object and not as a dict."""
BUILD = METHODS["build_and_run_instance"].versions


def parse_cap(value: str | None) -> Version | None:
    """The cap that *value* (release name or ``N.N``) names; None for no cap.

    Raises ConfigurationError when it is neither, or older than hosts that build servers.
    """
    if not value:
        return None
    parts = value.split(".")
    is_version = len(parts) == 2 and all(part.isdecimal() for part in parts)
    cap = ALIASES.get(value.lower()) or (_version(value) if is_version else None)
    if cap is None or cap < BUILD[-1]:
        raise errors.ConfigurationError(
            option=OPTION,
            reason=f"{value!r} is not a version from {_text(BUILD[-1])} on, the name of a release "
            f"from icehouse on, or {AUTO}",
        )
    return cap


def cap_for_service_version(lowest: int | None) -> Version | None:
    """The cap that the oldest compute service understands; None without any service."""
    if lowest is None:
        return None
    return next(cap for least, cap in BY_SERVICE_VERSION.items() if lowest >= int(least))


def newest(known: tuple[Version, ...], cap: Version | None) -> Version:
    """The newest of *known* (newest first) that *cap* allows: same major, no later minor."""
    for version in known:
        if cap is None or (version[0] == cap[0] and version[1] <= cap[1]):
            return version
    reason = f"nothing can be sent to computes at {_text(cap or ())}"
    raise errors.ConfigurationError(option=OPTION, reason=reason)


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


class ComputeAPI:
    """Casts to topic ``compute``, server = the host, in the version that the hosts understand.

    The version follows ``[upgrade_levels] compute``.  For its value ``auto``, the oldest compute
    service in *database* is looked up before each cast.  *retry* limits the attempts to reach the
    broker; None: no limit.
    """

    def __init__(
        self,
        transport: messaging.Transport,
        conf: cfg.ConfigOpts,
        database: Database | None = None,
        retry: int | None = None,
    ) -> None:
        """Raises ConfigurationError for a bad cap."""
        self._client = client(transport, TOPIC, "6.0", retry=retry)
        self._database = database
        configured = conf.upgrade_levels.compute
        self._auto = configured == AUTO
        self._cap = None if self._auto else parse_cap(configured)
        newest(BUILD, self._cap)

    def takes_spec_objects(self) -> bool:
        """True when hosts take the request as an object, and return it on a reschedule."""
        return newest(BUILD, self._current_cap()) >= SPEC_OBJECTS["build_and_run_instance"]

    def cast(
        self,
        context: RequestContext,
        host: str,
        method: str,
        *,
        legacy_spec: dict[str, Any] | None = None,
        **arguments: Any,
    ) -> None:
        """Cast *method* to *host*; *arguments* have the names and forms of the newest version.

        *legacy_spec* replaces ``request_spec`` for hosts that take the request as a dict.
        """
        cap = self._current_cap()
        version = newest(METHODS[method].versions, cap)
        if version < SPEC_OBJECTS.get(method, version):
            arguments["request_spec"] = legacy_spec
        arguments = METHODS[method].arguments(arguments, version)
        if method == "prep_resize" and version < (6, 0):
            arguments["instance_type"] = arguments.pop("flavor")
        if cap is not None and cap < NEWEST:
            release = next(name for name, least in RELEASES.items() if cap >= least)
            arguments = fitted(arguments, versions_of(release))
        call = self._client.prepare(server=host, version=_text(version))
        call.cast(context, method, **arguments)

    def _current_cap(self) -> Version | None:
        if not self._auto or self._database is None:
            return self._cap
        with self._database.read() as conn:
            known = services.list_all(conn, services.COMPUTE_BINARY)
        lowest = min((each.version or 0 for each in known if not each.forced_down), default=None)
        return cap_for_service_version(lowest)


def fitted(value: Any, versions: Mapping[str, str]) -> Any:
    """*value* with every object in it as an envelope of the version that *versions* names."""
    if isinstance(value, objects.WireObject):
        return value.encoded(versions)
    if isinstance(value, dict):
        return {name: fitted(each, versions) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [fitted(each, versions) for each in value]
    return value
