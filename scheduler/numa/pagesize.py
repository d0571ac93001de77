"""The page size that a flavor or image asks for (sections 4.3 and 10.2)."""

from __future__ import annotations

import re

from scheduler.numa.guest import ANY_PAGES, LARGE_PAGES, SMALL_PAGES

_WISHES = {"small": SMALL_PAGES, "large": LARGE_PAGES, "any": ANY_PAGES}
_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<prefix>[KMGT]?)i?(?P<unit>B|b|bit)")
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def newton_size_kb(text: str) -> int:
    """A wish (below zero) or a size in KiB; ValueError for anything else."""
    wish = _WISHES.get(text)
    if wish is not None:
        return wish
    if text.strip().lstrip("-").isdecimal():
        return _positive(int(text))
    return _with_unit(text)


def current_size_kb(text: str) -> int | None:
    """As Newton's, but blanks are refused and ``0`` is no wish."""
    wish = _WISHES.get(text)
    if wish is not None:
        return wish
    if text.isdecimal():
        return int(text) or None
    return _with_unit(text)


def _with_unit(text: str) -> int:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is neither a page size nor one of {', '.join(_WISHES)}")
    size = float(match["number"]) * 1024 ** _POWERS[match["prefix"]]
    return _positive(int(size / (1024 if match["unit"] == "B" else 8 * 1024)))


def _positive(size_kb: int) -> int:
    if size_kb <= 0:
        raise ValueError("a page size is 1 KiB at least")
    return size_kb
