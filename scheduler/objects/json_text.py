"""JSON texts that somebody else wrote into a column or a value."""

from __future__ import annotations

import json
from typing import Any

from scheduler.objects.base import within_depth


def read(text: str | bytes) -> Any:
    """What the JSON *text* says; ValueError for what is none, or nests without end."""
    try:
        return within_depth("", json.loads(text))
    except RecursionError:
        raise ValueError("it nests too deeply") from None
