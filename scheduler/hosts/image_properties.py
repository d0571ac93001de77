"""What an instance's image is like, as the instance's own records have it.

Reference page scheduling, section 7.7.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler import errors, objects
from scheduler.db.fleet_rows import IMAGE_KEY_PREFIX

#: (property, text of its value) of one image.
Properties = frozenset[tuple[str, str]]

_NONE: Properties = frozenset()


def properties_of(image: Any) -> Properties:
    """The properties of a request's image; none without an image."""
    return _NONE if image is None else _texts(image.properties)


def recorded(system_metadata: Mapping[str, str | None] | None) -> Properties:
    """The properties that an instance's *system_metadata* has; none if they cannot be read."""
    found = {
        key[len(IMAGE_KEY_PREFIX) :]: value
        for key, value in (system_metadata or {}).items()
        if key.startswith(IMAGE_KEY_PREFIX)
    }
    try:
        return _texts(objects.ImageMetaProps.from_dict(found)) if found else _NONE
    except errors.InvalidRequest:
        return _NONE


def _texts(properties: objects.ImageMetaProps) -> Properties:
    return frozenset((name, str(value)) for name, value in properties.to_dict().items())
