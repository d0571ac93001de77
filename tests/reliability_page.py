"""Tables in docs/reliability.md, each written by the run that made it, between two marks."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parents[1] / "docs" / "reliability.md"

Row = Sequence[str]


def render(head: Row, rows: Iterable[Row]) -> str:
    """The rows below their head, in Markdown."""
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *rows))


def digest(rows: Iterable[Row]) -> str:
    """Runs whose rows are alike have the same."""
    return hashlib.sha256("\n".join("|".join(row) for row in rows).encode()).hexdigest()[:12]


def recorded(name: str, page: str) -> list[Row]:
    """The rows of the table *name* that *page* has."""
    found = _between(name).search(page)
    lines = found[0].splitlines() if found else []
    cells = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    return [tuple(each) for each in cells[2:]]


def written(name: str, page: str, text: str) -> str:
    """*page* with *text* in the place of the table *name*."""
    return _between(name).sub(lambda found: f"{found[1]}{text}{found[2]}", page)


def _between(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
