"""Whether a message brought the arguments of its method (reference page rpc, section 2)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from scheduler import errors
from scheduler.objects import WireObject
from scheduler.rpc.failures import ArgumentMismatch

CONTEXT: Final = "context"
MOST_PATIENT_SECONDS: Final = 366 * 24 * 3600

FORMS: Final[Mapping[str, tuple[type, ...]]] = {
    "request_spec": (dict,),
    "filter_properties": (dict, type(None)),
}
"""What the dicts of requests below 4.3 must be where they are read without an object."""


def require(method: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Raise InvalidRequest naming the first argument of *method* that is not in *arguments*.

    Raises ArgumentMismatch naming the first of *arguments* that *method* does not have.
    """
    known, needed = _parameters(getattr(method, "__func__", method))
    for name in needed:
        if name not in arguments:
            raise errors.InvalidRequest(field=name, reason="missing")
    if not arguments.keys() <= known:
        name = next(name for name in arguments if name not in known)
        reason = f"got an unexpected keyword argument {name!r}"
        raise ArgumentMismatch(method.__qualname__, reason)


def require_fit(method: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Raise ArgumentMismatch if *method* of an endpoint cannot be called with *arguments*."""
    for name in ("self", CONTEXT):
        if name in arguments:
            reason = f"got an unexpected keyword argument {name!r}"
            raise ArgumentMismatch(method.__qualname__, reason)
    try:
        inspect.signature(method).bind(None, **arguments)
    except TypeError as error:
        raise ArgumentMismatch(method.__qualname__, str(error)) from None


def patience_seconds(incoming: Any) -> int:
    """How long the caller of a message waits, which the library makes a timer of.

    Raises InvalidRequest for what is no number, or for longer than any caller waits.
    """
    timeout, incoming.client_timeout = incoming.client_timeout, None
    try:
        seconds = int(timeout)
    except (TypeError, ValueError, OverflowError):
        seconds = -1
    if not 0 <= seconds <= MOST_PATIENT_SECONDS:
        raise errors.InvalidRequest(
            field="_timeout", reason=f"{timeout!r:.50} is no number of seconds up to a year"
        )
    return seconds


def check_forms(arguments: Mapping[str, Any]) -> None:
    """Raise InvalidRequest naming the first of *arguments* that is not of its form."""
    for name, forms in FORMS.items():
        if name in arguments and not isinstance(arguments[name], forms):
            given = type(arguments[name]).__name__
            raise errors.InvalidRequest(field=name, reason=f"dict expected, {given} given")
    spec = arguments.get("request_spec") or {}
    instance = spec.get("instance_properties")
    if not isinstance(instance, Mapping | WireObject | None):
        raise errors.InvalidRequest(
            field="request_spec.instance_properties", reason="a dict is needed"
        )


@functools.cache
def _parameters(function: Callable[..., Any]) -> tuple[frozenset[str], tuple[str, ...]]:
    """The names of all that can be given, and of what must be."""
    parameters = {
        name: parameter
        for name, parameter in inspect.signature(function).parameters.items()
        if name not in ("self", CONTEXT)
    }
    needed = tuple(name for name, each in parameters.items() if each.default is each.empty)
    return frozenset(parameters), needed
