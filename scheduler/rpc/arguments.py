"""Whether a message brought the arguments of its method (reference page rpc, section 2)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from scheduler import errors
from scheduler.rpc.failures import ArgumentMismatch

CONTEXT: Final = "context"

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
        raise ArgumentMismatch(method.__name__, reason)


def require_fit(method: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Raise ArgumentMismatch if *method* of an endpoint cannot be called with *arguments*."""
    if "self" in arguments:
        raise ArgumentMismatch(method.__name__, "got an unexpected keyword argument 'self'")
    try:
        inspect.signature(method).bind(None, **arguments)
    except TypeError as error:
        raise ArgumentMismatch(method.__name__, str(error)) from None


def check_forms(arguments: Mapping[str, Any]) -> None:
    """Raise InvalidRequest naming the first of *arguments* that is not of its form."""
    for name, forms in FORMS.items():
        if name in arguments and not isinstance(arguments[name], forms):
            given = type(arguments[name]).__name__
            raise errors.InvalidRequest(field=name, reason=f"dict expected, {given} given")


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
