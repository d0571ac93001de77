"""What a failed build leaves for its user to read (reference page conductor, section 6)."""

from __future__ import annotations

import traceback
from dataclasses import dataclass

from scheduler import errors


@dataclass(frozen=True)
class Fault:
    """One failure: *code* as HTTP status codes go, *details* a traceback or empty."""

    code: int
    message: str
    details: str


def fault_of(error: BaseException) -> Fault:
    """The fault that *error* becomes; it has a traceback if its code is 500."""
    kwargs = getattr(error, "kwargs", None)
    code = int(kwargs.get("code", 500)) if isinstance(kwargs, dict) else 500
    text = message_of(error) or type(error).__name__
    details = "".join(traceback.format_exception(error)) if code == 500 else ""
    return Fault(code, text, details)


def message_of(error: BaseException) -> str:
    """The text of *error* without the traceback that errors from remote services carry along."""
    if isinstance(error, errors.NovaException):
        return error.format_message()
    return str(error).partition("\n")[0]
