"""Results of Nova's functional tests: a file per module and scheduler, a line of JSON per test."""

import collections
import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

NOVA, OURS = "nova", "ours"
PASSED, FAILED = "passed", "failed"
DECISIONS: Final = "rpc:select_destinations"
_PREFIX: Final = "nova.tests.functional."
_HEAD: Final = """\
# Nova's functional tests

Nova's own functional tests, once with its scheduler and once with ours in its place
(`make test-nova-functional`). Ours is a whole worker with `claims = placement`. It has a
configuration, serializers, database readers and a client of Placement of its own. Messages travel
as JSON on the in-process bus. Databases are SQLite files.

| module | tests run | passed with Nova's | passed with ours | decisions by ours |
| --- | ---: | ---: | ---: | ---: |
"""

Rows = Mapping[str, Mapping[str, Any]]


def read(path: Path) -> Rows:
    """The rows of one file by test, its name without Nova's prefix; none without a file."""
    if not path.exists():
        return {}
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {row["test"].removeprefix(_PREFIX): row for row in rows}


def counted(rows: Rows) -> str:
    """How many tests had which outcome."""
    counts = collections.Counter(row["outcome"] for row in rows.values())
    return ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items()))


def looking_inside(path: Path) -> dict[str, str]:
    """Tests that look into Nova's scheduler, with the line that does."""
    lines = path.read_text(encoding="utf-8").splitlines()
    pairs = (line.split(maxsplit=1) for line in lines if line and not line.startswith("#"))
    return dict(pairs)


class Results:
    """The results below *folder*; those of ours are of one *revision*."""

    def __init__(self, folder: Path, revision: str) -> None:
        self._folder = folder
        self._of_mode = {NOVA: folder / NOVA, OURS: folder / revision}
        self.package = folder / revision / "package"

    def path(self, mode: str, name: str) -> Path:
        """The file of a module, or of a test alone."""
        return self._of_mode[mode] / f"{name}.jsonl"

    def of(self, mode: str, modules: Sequence[str]) -> dict[str, Any]:
        """The rows of all tests of *modules*."""
        return {test: row for each in modules for test, row in read(self.path(mode, each)).items()}

    def regressions(self, modules: Sequence[str]) -> list[str]:
        """Tests that pass with Nova's scheduler, and do not with ours, or never came to an end."""
        ours = self.of(OURS, modules)
        return [
            test
            for test, row in self.of(NOVA, modules).items()
            if row["outcome"] == PASSED and ours.get(test, {}).get("outcome") != PASSED
        ]

    def fails_more_often(self, test: str) -> bool:
        """True when, run alone, *test* passes less often with ours; without an end it fails."""
        passes = {
            mode: sum(
                row["outcome"] == PASSED
                for path in (self._of_mode[mode] / "alone").glob(f"{test}.*.jsonl")
                for row in read(path).values()
            )
            for mode in (NOVA, OURS)
        }
        return passes[OURS] < passes[NOVA]


def page(
    found: Results,
    modules: Sequence[str],
    inside: Mapping[str, str],
    red: Collection[str],
    notes: Mapping[str, Any],
) -> str:
    """The page of evidence."""
    lines, totals = [], [0, 0, 0, 0]
    for module in modules:
        ours, novas = found.of(OURS, [module]), found.of(NOVA, [module])
        numbers = [
            len(ours),
            sum(row["outcome"] == PASSED for row in novas.values()),
            sum(row["outcome"] == PASSED for row in ours.values()),
            sum(row["counts"].get(DECISIONS, 0) for row in ours.values()),
        ]
        if numbers[0]:
            lines.append(_line(module, numbers))
            totals = [before + more for before, more in zip(totals, numbers, strict=True)]
    lines.append(_line("**all**", totals))
    regressions = found.regressions(modules)
    lines += ["", "Passed with Nova's scheduler, and not with ours:", ""]
    for test in regressions:
        cause = f"looks inside: {inside[test]}" if test in inside else "**red**"
        cause = cause if test in inside or test in red else "passes alone"
        lines.append(f"* `{test}`: {cause}")
    lines += ["", f"Revision {notes['revision']}.", ""]
    return _HEAD + "\n".join(lines)


def _line(name: str, numbers: Sequence[int]) -> str:
    return "| " + " | ".join([name, *map(str, numbers)]) + " |"
