"""Errors of the other side as this project's classes (reference page rpc, section 5)."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import oslo_messaging

from scheduler import errors


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Within it a RemoteError of one of our classes is raised as that class.

    The message is the remote one; the keyword arguments are read back from it, as the library
    does not hand them over.  Any other error passes as it is.
    """
    try:
        yield
    except oslo_messaging.RemoteError as error:
        cls = _class_named(error.exc_type)
        if cls is None:
            raise
        raise cls(error.value, **_arguments_in(error.value, cls)) from error


def _class_named(name: str | None) -> type[errors.NovaException] | None:
    found = getattr(errors, name or "", None)
    if isinstance(found, type) and issubclass(found, errors.NovaException):
        return found
    return None


def _arguments_in(message: str, cls: type[errors.NovaException]) -> dict[str, Any]:
    """The values that formatting ``cls.msg_fmt`` put into *message*; none if another text."""
    parts = re.split(r"%\((\w+)\)s", cls.msg_fmt)
    pattern = "".join(
        f"(?P<{part}>.*?)" if index % 2 else re.escape(part) for index, part in enumerate(parts)
    )
    found = re.fullmatch(pattern, message, re.DOTALL)
    return found.groupdict() if found else {}
