"""What arguments must be; InvalidRequest names the one that is not."""

from __future__ import annotations

from typing import Any

from scheduler import errors


def require_texts(field: str, value: Any) -> None:
    """*value* has to be a list of texts."""
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise errors.InvalidRequest(field=field, reason="not a list of texts")


def require_list(field: str, value: Any) -> None:
    """*value* has to be a list."""
    if not isinstance(value, list | tuple):
        raise errors.InvalidRequest(field=field, reason=f"not a list: {type(value).__name__}")


def require_seconds(field: str, value: Any) -> None:
    """*value* has to be a number of seconds, more than none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise errors.InvalidRequest(field=field, reason=f"not a number of seconds: {value!r:.50}")
