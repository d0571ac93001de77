"""Wire classes by name, their versions, and bounds of unread values (objects, 1.4, 1.6, 2.6)."""

import functools
import json
import re
from typing import Any

from oslo_log import log as logging

from scheduler import errors
from scheduler.objects.fields import NAME_KEY as NAME_KEY
from scheduler.objects.fields import BadValue

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
