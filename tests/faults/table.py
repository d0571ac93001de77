"""The table of a run, on the screen and in docs/reliability.md, and what two runs must agree on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from tests import reliability_page
from tests.faults.world import Account
from tests.reliability_page import Row

NAME: Final = "faults"
HEAD: Final = (
    *("fault", "promise", "kept", "lost"),
    *("requests", "asked again", "refused by name", "recovery, s"),
)
#: The first cells of a row: in every run the same.  The others are numbers of one run.
AGREED: Final = 4
KEPT, BROKEN = "yes", "**no**"


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
    return reliability_page.render(HEAD, rows)


def digest(rows: Iterable[Row]) -> str:
    """Two runs whose promises were kept alike have the same."""
    return reliability_page.digest(row[:AGREED] for row in rows)


def recorded(page: str) -> list[Row]:
    """The rows of the table that *page* has."""
    return reliability_page.recorded(NAME, page)


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
    return reliability_page.written(NAME, page, text)
