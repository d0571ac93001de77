"""Wire classes by name, and the versions of them that each release of Nova understood.

Follows reference page objects, sections 2.6 and 8.
"""

from __future__ import annotations

import functools
import re
from typing import Any, TypeVar

from oslo_log import log as logging

from scheduler import errors

LOG = logging.getLogger(__name__)

NAMESPACE = "nova"
NAME_KEY = "nova_object.name"
NAMESPACE_KEY = "nova_object.namespace"
VERSION_KEY = "nova_object.version"
DATA_KEY = "nova_object.data"
CHANGES_KEY = "nova_object.changes"

_RELEASES = (
    "Kilo Liberty Mitaka Newton Ocata Pike Queens Rocky Stein Train Ussuri Victoria Wallaby Xena"
    " Yoga Zed 2023.1 2023.2 2024.1 2024.2 2025.1 2025.2 34"
)
RELEASES = _RELEASES.split()

HISTORY: dict[str, str] = {
    "RequestSpec": "1.4@Liberty 1.5@Mitaka 1.6@Newton 1.8@Ocata 1.11@Rocky 1.12@Stein 1.13@Ussuri"
    " 1.14@Wallaby 1.15@2024.1",
    "Destination": "1.0@Newton 1.1@Pike 1.2@Rocky 1.4@Train",
    "SchedulerRetries": "1.1@Liberty",
    "SchedulerLimits": "1.0@Liberty",
    "Selection": "1.0@Queens 1.1@Ussuri",
    "Flavor": "1.1@Kilo 1.2@Queens",
    "ImageMeta": "1.7@Liberty 1.8@Mitaka",
    "ImageMetaProps": "1.12@Mitaka 1.15@Newton 1.16@Ocata 1.19@Pike 1.20@Rocky 1.21@Stein"
    " 1.24@Train 1.25@Ussuri 1.27@Victoria 1.29@Wallaby 1.30@Xena 1.31@Yoga 1.34@Zed 1.37@2024.1"
    " 1.38@2024.2 1.39@2025.1 1.42@2025.2 1.44@34",
    "InstanceGroup": "1.9@Kilo 1.10@Liberty 1.11@Rocky",
    "InstanceNUMATopology": "1.1@Kilo 1.2@Liberty 1.3@Ocata",
    "InstanceNUMACell": "1.2@Kilo 1.3@Mitaka 1.4@Ocata 1.6@Victoria",
    "NUMATopology": "1.2@Kilo",
    "NUMACell": "1.2@Kilo 1.3@Rocky 1.4@Train 1.5@Wallaby",
    "NUMAPagesTopology": "1.0@Kilo 1.1@Newton",
    "NUMATopologyLimits": "1.0@Kilo 1.1@Rocky",
    "InstancePCIRequests": "1.1@Kilo",
    "InstancePCIRequest": "1.1@Kilo 1.2@Queens 1.3@Stein 1.4@Wallaby",
    "PciDevicePool": "1.1@Kilo",
    "PciDevicePoolList": "1.1@Kilo",
    "ComputeNode": "1.11@Kilo 1.14@Liberty 1.16@Mitaka 1.18@Pike 1.19@Train",
    "ComputeNodeList": "1.11@Kilo 1.14@Liberty 1.15@Newton 1.16@Ocata 1.17@Pike",
    "Service": "1.12@Kilo 1.18@Liberty 1.19@Mitaka 1.20@Newton 1.22@Pike",
    "Aggregate": "1.1@Kilo 1.2@Mitaka 1.3@Newton",
    "AggregateList": "1.2@Kilo 1.3@Rocky",
    "Instance": "1.19@Kilo 2.1@Mitaka 2.3@Newton 2.4@Rocky 2.7@Train 2.8@2023.2",
    "InstanceList": "1.16@Kilo 2.0@Mitaka 2.1@Newton 2.2@Ocata 2.4@Pike 2.6@Train",
    "NetworkRequest": "1.1@Kilo 1.2@Newton 1.3@Xena",
    "NetworkRequestList": "1.1@Kilo",
    "BlockDeviceMapping": "1.8@Kilo 1.15@Liberty 1.16@Mitaka 1.17@Newton 1.18@Pike 1.19@Queens"
    " 1.20@Stein 1.21@Zed",
    "BlockDeviceMappingList": "1.9@Kilo 1.16@Liberty 1.17@Mitaka 1.18@Wallaby",
    "MonitorMetric": "1.1@Liberty",
    "HVSpec": "1.0@Kilo 1.1@Liberty 1.2@Mitaka",
    "RequestGroup": "1.1@Stein 1.3@Train",
    "RequestLevelParams": "1.0@Ussuri 1.1@Xena",
    "NetworkMetadata": "1.0@Rocky",
    "SecurityGroup": "1.1@Kilo 1.2@Ocata",
    "SecurityGroupList": "1.0@Kilo 1.1@Pike",
    "CellMapping": "1.0@Kilo 1.1@Rocky",
}
"""Class name to the versions that releases shipped: ``version@first release``, oldest first."""

Version = tuple[int, int]
_PATTERN = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})(?:\..*)?")
_classes: dict[str, type] = {}
_C = TypeVar("_C", bound=type)


def register(cls: _C) -> _C:
    """Class decorator: read envelopes of this class's name as this class."""
    if cls.__name__ in _classes:
        raise ValueError(f"a wire class named {cls.__name__} exists already")
    _classes[cls.__name__] = cls
    return cls


def find(name: Any) -> type | None:
    """The class of that name, or None."""
    return _classes.get(name) if isinstance(name, str) else None


def names() -> list[str]:
    """The names of all classes, sorted."""
    return sorted(_classes)


def check_namespace(envelope: dict[str, Any]) -> None:
    """Raise UnsupportedObjectError for an object that is not Nova's."""
    namespace = envelope.get(NAMESPACE_KEY)
    if namespace != NAMESPACE:
        raise errors.UnsupportedObjectError(objtype=f"{namespace}.{envelope.get(NAME_KEY)}")


@functools.lru_cache(maxsize=512)
def parse(text: str) -> Version:
    """Read ``major.minor``, dropping a third part; ValueError for anything else."""
    found = _PATTERN.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r:.50} is not a version")
    return int(found[1]), int(found[2])


def check(name: str, version: str, supported: str) -> Version:
    """The numbers of a received version; IncompatibleObjectVersion for another major."""
    numbers, ours = parse(version), parse(supported)
    if numbers[0] != ours[0]:
        raise errors.IncompatibleObjectVersion(objname=name, objver=version, supported=supported)
    if numbers > ours:
        _report_newer(name, version, supported)
    return numbers


@functools.lru_cache(maxsize=256)
def _report_newer(name: str, version: str, supported: str) -> None:
    # Cached: one line for a fleet of newer peers, not one per message.
    LOG.debug("Reading %s %s, which is newer than our %s", name, version, supported)


@functools.lru_cache(maxsize=128)
def manifest(name: str, version: str) -> dict[str, str]:
    """The version of every class in the first release whose *name* had *version*.

    Later releases understand what the earliest one did.
    """
    wanted = parse(version)
    fitting = [release for number, release in _history(name) if parse(number) <= wanted]
    return {**of_release(RELEASES[fitting[-1] if fitting else 0]), name: version}


@functools.lru_cache(maxsize=len(RELEASES))
def of_release(release: str) -> dict[str, str]:
    """The version of every class in *release*, which is one of ``RELEASES``."""
    index = RELEASES.index(release)
    return {name: _at_release(name, index) for name in HISTORY}


def _history(name: str) -> list[tuple[str, int]]:
    rows = (row.split("@") for row in HISTORY.get(name, "").split())
    return [(version, RELEASES.index(release)) for version, release in rows]


def _at_release(name: str, release: int) -> str:
    rows = _history(name)
    known = [version for version, index in rows if index <= release]
    return known[-1] if known else rows[0][0]
