"""Objects as plain values, for legacy dicts and notifications (objects page, 1.6)."""

from __future__ import annotations

import functools
import ipaddress
from typing import Any

from scheduler.objects import registry
from scheduler.objects.base import WireObject
from scheduler.objects.nested import ListObject, OpaqueObject


@functools.singledispatch
def to_plain(value: Any) -> Any:
    """*value* with every object in it as the dict of its set and computed fields.

    List objects become lists, sets sorted lists, addresses text; datetimes stay datetimes.
    """
    return value


@to_plain.register
def _object(value: WireObject) -> dict[str, Any]:
    computed = {name: getattr(value, name) for name in value.COMPUTED}
    return {k: to_plain(v) for k, v in {**value.set_fields(), **computed}.items()}


@to_plain.register(ListObject)
@to_plain.register(list)
@to_plain.register(tuple)
def _list(value: Any) -> list[Any]:
    return [to_plain(item) for item in value]


@to_plain.register
def _opaque(value: OpaqueObject) -> Any:
    return to_plain(value.envelope)


@to_plain.register
def _dict(value: dict) -> dict[str, Any]:
    inner = value.get(registry.DATA_KEY, value) if registry.NAME_KEY in value else value
    return {key: to_plain(item) for key, item in inner.items()}


@to_plain.register(set)
@to_plain.register(frozenset)
def _set(value: Any) -> list[Any]:
    return sorted(value)


@to_plain.register(ipaddress.IPv4Address)
@to_plain.register(ipaddress.IPv6Address)
def _address(value: Any) -> str:
    return str(value)
