"""Wire classes by name, and their versions (reference page objects, section 2.6)."""

from __future__ import annotations

import functools
import re
from typing import Any

from oslo_log import log as logging

from scheduler import errors

LOG = logging.getLogger(__name__)

NAMESPACE = "nova"
NAME_KEY = "nova_object.name"
NAMESPACE_KEY = "nova_object.namespace"
VERSION_KEY = "nova_object.version"
DATA_KEY = "nova_object.data"
CHANGES_KEY = "nova_object.changes"

Version = tuple[int, int]
_PATTERN = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})(?:\..*)?")
_classes: dict[str, type] = {}


def register(cls: type) -> None:
    """Read envelopes of the name of *cls* as that class; ValueError if the name is taken."""
    if cls.__name__ in _classes:
        raise ValueError(f"a wire class named {cls.__name__} exists already")
    _classes[cls.__name__] = cls


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
