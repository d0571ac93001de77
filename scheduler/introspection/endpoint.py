"""The listed methods as an RPC endpoint."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any

import oslo_messaging

from scheduler import errors
from scheduler.introspection.methods import METHODS
from scheduler.introspection.subject import Subject
from scheduler.rpc.worker_client import NAMESPACE, VERSION


class IntrospectionEndpoint:
    """Asks *subject* by *methods*; nothing else of it is within reach."""

    target = oslo_messaging.Target(namespace=NAMESPACE, version=VERSION)

    def __init__(
        self, subject: Subject, methods: Mapping[str, Callable[..., Any]] = METHODS
    ) -> None:
        self._subject = subject
        for name, function in methods.items():
            setattr(self, name, types.MethodType(_answering(function), self))


def _answering(function: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(function)

    @oslo_messaging.expose
    def answer(endpoint: IntrospectionEndpoint, context: Any, **arguments: Any) -> Any:
        del context
        try:
            signature.bind(endpoint._subject, **arguments)
        except TypeError as error:
            raise errors.InvalidRequest(field="args", reason=str(error)) from error
        return function(endpoint._subject, **arguments)

    return answer
