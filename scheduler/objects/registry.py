"""The wire classes by name, and the rule for names that are not among them."""

from __future__ import annotations

from typing import Any, TypeVar

from scheduler import errors

NAMESPACE = "nova"
NAME_KEY = "nova_object.name"
NAMESPACE_KEY = "nova_object.namespace"
VERSION_KEY = "nova_object.version"
DATA_KEY = "nova_object.data"
CHANGES_KEY = "nova_object.changes"

_classes: dict[str, type] = {}

_C = TypeVar("_C", bound=type)


def register(cls: _C) -> _C:
    """Class decorator: let envelopes of this class's name be read as this class."""
    if cls.__name__ in _classes:
        raise ValueError(f"a wire class named {cls.__name__} exists already")
    _classes[cls.__name__] = cls
    return cls


def find(name: str) -> type | None:
    """The class of that name, or nothing."""
    return _classes.get(name)


def names() -> list[str]:
    """All names that can be read, sorted."""
    return sorted(_classes)


def class_of(envelope: dict[str, Any]) -> type:
    """The class that reads *envelope*; UnsupportedObjectError when there is none."""
    name = envelope.get(NAME_KEY)
    cls = _classes.get(name) if isinstance(name, str) else None
    if cls is None:
        raise errors.UnsupportedObjectError(objtype=name)
    return cls


def check_namespace(envelope: dict[str, Any]) -> None:
    """Refuse objects that are not Nova's."""
    namespace = envelope.get(NAMESPACE_KEY)
    if namespace != NAMESPACE:
        raise errors.UnsupportedObjectError(objtype=f"{namespace}.{envelope.get(NAME_KEY)}")
