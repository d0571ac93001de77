"""Wire classes by name, their versions, and objects of unknown ones (objects, 1.4, 1.6, 2.6)."""

from __future__ import annotations

import functools
import json
import re
from typing import Any

from oslo_log import log as logging

from scheduler import errors
from scheduler.objects.fields import NAME_KEY, BadValue, Manifest, ObjectOf, described, is_object

LOG = logging.getLogger(__name__)

NAMESPACE = "nova"
NAMESPACE_KEY = "nova_object.namespace"
VERSION_KEY = "nova_object.version"
DATA_KEY = "nova_object.data"
CHANGES_KEY = "nova_object.changes"

MAX_DEPTH = 128
"""Nesting limit of unread values, whatever ``[scheduler] max_request_depth`` lets through."""

Version = tuple[int, int]
_PATTERN = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})(?:\..*)?")
CLASSES: dict[str, Any] = {}
"""The wire classes by name."""


def foreign(envelope: dict[str, Any]) -> errors.NovaException:
    """The error for an object that is not Nova's."""
    name = f"{envelope.get(NAMESPACE_KEY)}.{envelope.get(NAME_KEY)}"
    return errors.UnsupportedObjectError(objtype=name)


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


def is_deeper(levels: int, value: Any) -> bool:
    """True when lists and dicts nest in more than so many levels, *value* being the first."""
    layer = [value] if type(value) is dict or type(value) is list else []
    for _ in range(levels):
        inner: list[Any] = []
        for each in layer:
            inner.extend(each.values() if type(each) is dict else each)
        layer = [value for value in inner if type(value) is dict or type(value) is list]
        if not layer:
            return False
    return bool(layer)


def within_depth(part: str, value: Any) -> Any:
    """Return *value*; raise BadValue if it nests too deeply to be emitted again.

    Only values that are kept unread need this check: known classes nest only finitely.
    """
    if is_deeper(MAX_DEPTH, value):
        raise BadValue(f"nested more than {MAX_DEPTH} levels deep", part)
    return value


def read_json(text: str | bytes) -> Any:
    """The value of a JSON *text*; ValueError if it is not JSON or nests too deeply."""
    try:
        return within_depth("", json.loads(text))
    except RecursionError:
        raise ValueError("it nests too deeply") from None


class OpaqueObject:
    """A nested object of an unknown class, carried and emitted exactly as received."""

    def __init__(self, envelope: dict[str, Any]) -> None:
        if envelope.get(NAMESPACE_KEY) != NAMESPACE:
            raise foreign(envelope)
        self.envelope = within_depth("", envelope)

    def obj_to_primitive(self) -> dict[str, Any]:
        """The envelope as received."""
        return self.envelope

    def encoded(self, manifest: Manifest | None) -> dict[str, Any]:
        """The envelope as received; it cannot be fitted to another version."""
        return self.envelope

    def __repr__(self) -> str:
        return f"OpaqueObject({self.envelope.get(NAME_KEY)})"


class AnyObject(ObjectOf):
    """Any object; of an unknown class it is kept as an :class:`OpaqueObject`."""

    def __init__(self) -> None:
        super().__init__(None)

    def _converted(self, value: Any) -> Any:
        if is_object(value):
            return value
        if type(value) is not dict or NAME_KEY not in value:
            raise ValueError(f"an object is needed, not {described(value)}")
        cls = CLASSES.get(str(value[NAME_KEY]))
        return OpaqueObject(value) if cls is None else cls.read(value)
