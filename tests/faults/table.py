"""The table of a run, on the screen and in docs/reliability.md, and what two runs must agree on."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.faults.world import Account

PAGE: Final = Path(__file__).parents[2] / "docs" / "reliability.md"
HEAD: Final = (
    *("fault", "promise", "kept", "lost"),
    *("requests", "asked again", "refused by name", "recovery, s"),
)
#: The first cells of a row: in every run the same.  The others are numbers of one run.
AGREED: Final = 4
KEPT, BROKEN = "yes", "**no**"
_BETWEEN: Final = re.compile(r"(<!-- begin faults -->\n).*?(<!-- end faults -->)", re.DOTALL)

Row = Sequence[str]


@dataclass(frozen=True)
class Result:
    """What became of one promise; no *account* where its end was not reached."""

    fault: str
    promise: str
    is_kept: bool
    account: Account | None

    @property
    def row(self) -> Row:
        """A line of the table."""
        kept = KEPT if self.is_kept else BROKEN
        if self.account is None:
            return (self.fault, self.promise, kept, "?", "?", "?", "?", "?")
        refusals = sorted(self.account.refusals.items())
        return (
            *(self.fault, self.promise, kept, str(self.account.lost)),
            *(str(self.account.requests), str(self.account.asked_again)),
            ", ".join(f"{count} {name}" for name, count in refusals) or "0",
            f"{self.account.recovery_seconds:.1f}",
        )


def render(rows: Iterable[Row]) -> str:
    """The rows below their head, in Markdown."""
    return "".join(f"| {' | '.join(row)} |\n" for row in (HEAD, ["---"] * len(HEAD), *rows))


def digest(rows: Iterable[Row]) -> str:
    """Two runs whose promises were kept alike have the same."""
    agreed = "\n".join("|".join(row[:AGREED]) for row in rows)
    return hashlib.sha256(agreed.encode()).hexdigest()[:12]


def recorded(page: str) -> list[Row]:
    """The rows of the table that *page* has."""
    found = _BETWEEN.search(page)
    lines = found[0].splitlines() if found else []
    cells = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    return [tuple(each) for each in cells[2:]]


def differences(rows: Iterable[Row], before: Iterable[Row]) -> list[str]:
    """Where the *rows* of this run and of the one *before* disagree about the same promise."""
    known = {tuple(row[:2]): tuple(row[2:AGREED]) for row in before}
    return [
        f"{row[0]}: kept {row[2]}, lost {row[3]}; before: {', '.join(known[row[0], row[1]])}"
        for row in rows
        if known.get((row[0], row[1]), tuple(row[2:AGREED])) != tuple(row[2:AGREED])
    ]


def written(page: str, notes: str, rows: Sequence[Row]) -> str:
    """*page* with the table of this run."""
    text = f"{notes}\n\n{render(rows)}\nDigest of the first four columns: `{digest(rows)}`.\n"
    return _BETWEEN.sub(lambda found: f"{found[1]}{text}{found[2]}", page)
