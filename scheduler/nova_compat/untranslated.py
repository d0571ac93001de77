"""Messages stay as they are written: this project has no translations."""

from __future__ import annotations


def as_written(message: str) -> str:
    """What Nova's ``_`` and its siblings stand for."""
    return message
