"""What somebody who mistyped a name may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The one of *known* that is spelt most like *name*; None if none is."""
    of_lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), of_lower, n=1)
    return of_lower[near[0]] if near else None


def meant(name: str, known: Iterable[str]) -> str:
    """The end of an error about *name*: a question, or nothing."""
    near = nearest(name, known)
    return "" if near is None else f"; did you mean {near}?"
