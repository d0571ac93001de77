"""Log lines as the library writes them, at less cost where a line is nothing unusual.

For each line the library puts thirty values of the context into the record, works out the time in
a second form, and asks its options for what they say about errors and instances; and Python looks
up the thread, which takes longest in a greenlet.  Every decision leaves a line, so one of them is
made here of what its format names.  All others are the library's.
"""

from __future__ import annotations

import functools
import logging
from typing import Any, Final

from oslo_context import context as oslo_context
from oslo_log import formatters

_USUAL_EXTRA: Final[tuple[list[str] | None, ...]] = (None, [], ["project", "version"])
"""What the library's loggers add to their records by themselves."""
_OF_RECORD: Final = ("context", "instance", "instance_uuid", "request_id")
"""What somebody may have added to make a line another one."""
_OF_CONTEXT: Final = ("instance", "instance_uuid", "resource_uuid")
_EMPTY: Final = dict.fromkeys(
    ("color", "user_identity", "resource", "user_name", "project_name", "global_request_id"), ""
)
_FORMATS: Final = (
    "logging_context_format_string",
    "logging_default_format_string",
    "logging_debug_format_suffix",
    "logging_exception_prefix",
)
_COSTLY: Final = ("%(isotime)", "%(error_summary)")


class _Dashed(dict[str, Any]):
    """What is missing or empty reads as a dash."""

    def __getitem__(self, name: str) -> Any:
        return self.get(name) or "-"


class LineFormatter(formatters.ContextFormatter):
    """The library's, with a short way for a line of a request that says no more than its text."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        if record.levelno == logging.INFO and not (
            record.exc_info or record.exc_text or record.stack_info
        ):
            context = oslo_context.get_current()
            if context is not None and _is_usual(record.__dict__, context):
                text = self._line(record, context)
                if text is not None:
                    return text
        found: str = super().format(record)
        return found

    def _line(self, record: logging.LogRecord, context: Any) -> str | None:
        """The line; None if it is to be made by the library."""
        values = context.get_logging_values()
        text: str = self.conf.logging_context_format_string
        has_time, has_identity, is_costly = _parts(text)
        if is_costly or not values.get("request_id"):
            return None
        shown = {
            **_EMPTY,
            **record.__dict__,
            "project": self.project,
            "version": self.version,
            **values,
            "instance": "",
        }
        try:
            if has_identity:
                shown["user_identity"] = self.conf.logging_user_identity_format % _Dashed(values)
            shown["message"] = record.getMessage()
            if has_time:
                shown["asctime"] = self.formatTime(record, self.datefmt)
            return text % shown
        except (KeyError, TypeError, ValueError):
            return None  # which the library tells of


def install() -> None:
    """Have the handlers that the library has set up make their lines so.

    Those that write more than lines, as that of the journal does with its fields, read what the
    library has put into the record, and keep its formatter.
    """
    handlers = logging.getLogger().handlers
    for handler in handlers:
        known = handler.formatter
        writes_lines = isinstance(handler, logging.StreamHandler)
        if writes_lines and type(known) is formatters.ContextFormatter:
            handler.setFormatter(
                LineFormatter(
                    datefmt=known.datefmt,
                    project=known.project,
                    version=known.version,
                    config=known.conf,
                )
            )
    # What no line shows is not looked up for it.
    logging.logThreads = logging.logMultiprocessing = any(map(_may_show_thread, handlers))


def _may_show_thread(handler: logging.Handler) -> bool:
    """Whether a line of *handler* may say which thread, or process by its name, has logged it."""
    formatter = handler.formatter
    if not isinstance(formatter, LineFormatter):
        return True  # which may tell more than its line says
    shown = " ".join(str(formatter.conf[name]) for name in _FORMATS)
    return "%(thread" in shown or "%(processName)" in shown


def _is_usual(record: dict[str, Any], context: Any) -> bool:
    return (
        isinstance(context, oslo_context.RequestContext)
        and record.get("extra_keys") in _USUAL_EXTRA
        and not any(name in record for name in _OF_RECORD)
        and not any(getattr(context, name, None) for name in _OF_CONTEXT)
    )


@functools.lru_cache(maxsize=8)
def _parts(text: str) -> tuple[bool, bool, bool]:
    """Whether *text* shows the time, the identity, and anything that the library makes."""
    return (
        "%(asctime)" in text,
        "%(user_identity)" in text,
        any(each in text for each in _COSTLY),
    )
