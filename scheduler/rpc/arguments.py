"""Whether a message brought the arguments of its method (reference page rpc, section 2)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from scheduler import errors

CONTEXT: Final = "context"

FORMS: Final[Mapping[str, tuple[type, ...]]] = {
    "request_spec": (dict,),
    "filter_properties": (dict, type(None)),
}
"""What the dicts of requests below 4.3 must be where they are read without an object."""


def require(method: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Raise InvalidRequest naming the first argument of *method* that is not in *arguments*."""
    for name in _needed(getattr(method, "__func__", method)):
        if name not in arguments:
            raise errors.InvalidRequest(field=name, reason="missing")


def check_forms(arguments: Mapping[str, Any]) -> None:
    """Raise InvalidRequest naming the first of *arguments* that is not of its form."""
    for name, forms in FORMS.items():
        if name in arguments and not isinstance(arguments[name], forms):
            given = type(arguments[name]).__name__
            raise errors.InvalidRequest(field=name, reason=f"dict expected, {given} given")


@functools.cache
def _needed(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is parameter.empty and name not in ("self", CONTEXT)
    )
