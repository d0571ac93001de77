"""What became of the mutants, kept as JSON and shown as a page.

``accepted.yaml`` says of survivors why nothing is done about them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).resolve().parent
KEPT = FOLDER / "results.json"
ACCEPTED = FOLDER / "accepted.yaml"
PAGE = FOLDER.parents[1] / "docs/mutation.md"
UNJUDGED = "Not judged yet"


@dataclass(frozen=True)
class Survivor:
    """A mutant that no test noticed, by mutmut's *name*: what *function* said, and says then."""

    name: str
    function: str
    was: str
    becomes: str
    untested: bool = False


@dataclass(frozen=True)
class Outcome:
    """What became of one module's mutants, of which *tried* were tried.

    *digest* tells the text of the module that was mutated.
    """

    room: str
    digest: str
    mutants: int
    tried: int
    killed: int
    timeout: int
    survivors: list[Survivor] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Killed or timed out, of those that were tried; 1 if there was nothing to try."""
        return (self.killed + self.timeout) / self.tried if self.tried else 1.0


def total(outcomes: Iterable[Outcome], name: str) -> Outcome:
    """The figures of several modules together, without their survivors."""
    several = list(outcomes)
    sums = {
        key: sum(getattr(each, key) for each in several)
        for key in ("mutants", "tried", "killed", "timeout")
    }
    return Outcome(name, "", **sums)


def load(path: Path = KEPT) -> dict[str, Outcome]:
    """The results kept in *path*, per module; none if there is no such file."""
    if not path.exists():
        return {}
    kept = json.loads(path.read_text(encoding="utf-8"))
    return {
        module: Outcome(
            **{**values, "survivors": [Survivor(**each) for each in values["survivors"]]}
        )
        for module, values in kept.items()
    }


def save(outcomes: Mapping[str, Outcome], path: Path = KEPT) -> None:
    """Keep *outcomes* in *path*."""
    values = {module: asdict(outcomes[module]) for module in sorted(outcomes)}
    path.write_text(json.dumps(values, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def row(outcome: Outcome) -> list[str]:
    """The figures of a table's row."""
    survived = outcome.tried - outcome.killed - outcome.timeout
    numbers = (outcome.mutants, outcome.tried, outcome.killed, outcome.timeout, survived)
    return [*map(str, numbers), f"{100 * outcome.share:.1f} %"]


HEADINGS = ("mutants", "tried", "killed", "timeout", "survived", "share")


def groups(
    outcomes: Mapping[str, Outcome], reasons: Sequence[Mapping[str, Any]]
) -> dict[str, list[str]]:
    """The survivors as lines of text, by the reason why nothing is done about them."""
    found: dict[str, list[str]] = {}
    for module, outcome in outcomes.items():
        for each in outcome.survivors:
            text = f"{module} {each.function}: {each.was} → {each.becomes}"
            why = next(
                (
                    group["why"]
                    for group in reasons
                    if any(re.search(pattern, text) for pattern in group["mutants"])
                ),
                UNJUDGED,
            )
            found.setdefault(why, []).append(text + (" (no test)" if each.untested else ""))
    return found


def page(outcomes: Mapping[str, Outcome], reasons: Sequence[Mapping[str, Any]]) -> str:
    """The page ``docs/mutation.md``."""
    lines = [(FOLDER / "page.md").read_text(encoding="utf-8").rstrip(), "", *_table(outcomes)]
    lines += ["", "## Survivors"]
    found = groups(outcomes, reasons)
    order = [group["why"] for group in reasons]
    for why in sorted(found, key=lambda each: order.index(each) if each in order else -1):
        lines += ["", f"### {why} ({len(found[why])})", "", "```text", *found[why], "```"]
    return "\n".join(lines) + "\n"


def _table(outcomes: Mapping[str, Outcome]) -> list[str]:
    lines = [
        f"| module | {' | '.join(HEADINGS)} |",
        "| --- |" + " ---: |" * len(HEADINGS),
    ]
    for room in dict.fromkeys(each.room for each in outcomes.values()):
        of_room = {name: each for name, each in outcomes.items() if each.room == room}
        lines += [f"| `{name}` | {' | '.join(row(each))} |" for name, each in of_room.items()]
        figures = " | ".join(row(total(of_room.values(), room)))
        lines.append(f"| **{room}** | {figures} |")
    return lines


def accepted() -> list[dict[str, Any]]:
    """Why nothing is done about survivors, each reason with the patterns of its mutants."""
    found: list[dict[str, Any]] = yaml.safe_load(ACCEPTED.read_text(encoding="utf-8"))
    return found


def write_page() -> None:
    """Write the page anew from what is kept."""
    PAGE.write_text(page(load(), accepted()), encoding="utf-8")
