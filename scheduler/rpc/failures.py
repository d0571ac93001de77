"""What a caller is told of a failure: class, text and keywords, and never where it happened.

The library answers with the traceback of whatever is raised.  What a caller did wrong is in the
text; what went wrong here is in the log, under the id that the caller gets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import oslo_messaging
from oslo_log import log as logging

from scheduler import errors
from scheduler.explain.telling import identified

LOG = logging.getLogger(__name__)

SERVER_FAULT_CODE: Final = 500
#: There is no such method, or not in this version.
NOT_SERVED: Final = (oslo_messaging.NoSuchMethod, oslo_messaging.UnsupportedVersion)


class ArgumentMismatch(Exception):
    """An argument is missing, unknown or given twice; *reason* names it."""

    def __init__(self, method: str, reason: str) -> None:
        super().__init__(f"{method}() {reason:.200}")


def told(error: Exception, message: Mapping[str, Any], context: Any) -> Exception:
    """The error that the caller of *message* gets instead of *error*, or *error* itself.

    A mistake of the caller is one line in the log; a fault of this service gets an id.
    """
    if isinstance(error, oslo_messaging.ExpectedException):
        known: Exception = error.exc_info[1]
        return known
    method = f"{message.get('method')!s:.100}"
    if isinstance(error, ArgumentMismatch):
        error = TypeError(str(error))  # as Nova's services answer
    elif not isinstance(error, NOT_SERVED) and not is_refusal(error):
        return identified(error, getattr(context, "request_id", None), method)
    LOG.warning("Refused %s: %s", method, error)
    return error


def is_refusal(error: BaseException) -> bool:
    """Whether *error* says no to what was asked, and nothing went wrong here."""
    if not isinstance(error, errors.NovaException):
        return False
    if errors.code_of(error) != errors.INTERNAL_FAULT:
        return True
    return int(error.kwargs.get("code", error.code)) < SERVER_FAULT_CODE


def alone(error: Exception) -> oslo_messaging.ExpectedException:
    """To be raised where the library is to answer with *error*, and with nothing that led to it."""
    error.__cause__ = None  # which also keeps what it was raised in the midst of from being shown
    answer = oslo_messaging.ExpectedException()
    answer.exc_info = (type(error), error, None)
    return answer
