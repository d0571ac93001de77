"""Texts inside columns and values: JSON that others wrote, and sets of CPUs."""

from __future__ import annotations

import json
from typing import Any

from scheduler.objects.base import within_depth

MAX_CPU = 65535


def read_json(text: str | bytes) -> Any:
    """The value of a JSON *text*; ValueError if it is not JSON or nests too deeply."""
    try:
        return within_depth("", json.loads(text))
    except RecursionError:
        raise ValueError("it nests too deeply") from None


def parse_cpu_spec(text: str) -> set[int]:
    """Read ``0-3,^2,5``: numbers and ranges, without those behind ``^``; ValueError if bad.

    Follows reference page numa_pci, section 3.
    """
    included: set[int] = set()
    excluded: set[int] = set()
    for item in text.split(","):
        item = item.strip()
        if not item:
            continue
        negated = item.startswith("^")
        first, dash, last = item.removeprefix("^").partition("-")
        low = _number(first)
        high = _number(last) if dash else low
        if low > high:
            raise ValueError(f"{item!r} is not a range of CPUs")
        (excluded if negated else included).update(range(low, high + 1))
    return included - excluded


def _number(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not the number of a CPU") from None
    # The bound keeps a hostile range from filling the memory.
    if not 0 <= number <= MAX_CPU:
        raise ValueError(f"{number} is not the number of a CPU")
    return number
