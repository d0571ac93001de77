"""Results of Nova's functional tests: a file per module and scheduler, a line of JSON per test."""

import collections
import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.world.results import table

NOVA, OURS = "nova", "ours"
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
DECISIONS: Final = "rpc:select_destinations"
_PREFIX: Final = "nova.tests.functional."
_LEFT_OUT: Final = "- "
_HEAD: Final = (
    "module",
    "tests run",
    "passed with Nova's",
    "passed with ours",
    "decisions by ours",
)

Rows = Mapping[str, Mapping[str, Any]]


def read(path: Path) -> Rows:
    """The rows of one file by test, its name without Nova's prefix; none without a file.

    Of a test that ran in several scenarios, named in brackets, it is one that did not pass.
    """
    found: dict[str, Mapping[str, Any]] = {}
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        row = json.loads(text)
        name = row["test"].removeprefix(_PREFIX).partition("(")[0]
        if found.get(name, {}).get("outcome", PASSED) == PASSED:
            found[name] = row
    return found


def counted(rows: Rows) -> str:
    """How many tests had which outcome."""
    counts = collections.Counter(row["outcome"] for row in rows.values())
    return ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items()))


def lines(path: Path) -> list[str]:
    found = path.read_text(encoding="utf-8").splitlines()
    return [line for line in found if line and not line.startswith("#")]


def looking_inside(path: Path) -> dict[str, str]:
    """Tests that look into Nova's scheduler, with the line that does."""
    return dict(line.split(maxsplit=1) for line in lines(path))


def modules(path: Path) -> list[str]:
    """The modules that run, or packages and classes of them."""
    return [line for line in lines(path) if not line.startswith(_LEFT_OUT)]


def left_out(path: Path) -> dict[str, str]:
    """Patterns of the modules that do not run, with the reason."""
    found = (line.removeprefix(_LEFT_OUT) for line in lines(path) if line.startswith(_LEFT_OUT))
    return dict(line.split(maxsplit=1) for line in found)


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
        return {test: row for each in modules for test, row in read(self.path(mode, each)).items()}

    def regressions(self, modules: Sequence[str]) -> list[str]:
        """Tests that pass with Nova's scheduler, and do not with ours, or never came to an end."""
        ours = self.of(OURS, modules)
        return [
            test
            for test, row in self.of(NOVA, modules).items()
            if row["outcome"] == PASSED and ours.get(test, {}).get("outcome") != PASSED
        ]

    def not_passed(self, modules: Sequence[str]) -> list[str]:
        """Tests that did not pass with ours, or never came to an end."""
        ours = self.of(OURS, modules)
        tests = [name for each in modules for name in self._names(OURS, each)]
        return [each for each in tests if ours.get(each, {}).get("outcome") != PASSED]

    def has_begun(self, mode: str, module: str) -> bool:
        """True when the names of the tests of *module* are known."""
        return bool(self._names(mode, module))

    def has_ended(self, mode: str, module: str) -> bool:
        """True when every test of *module* has a result."""
        names = self._names(mode, module)
        return bool(names) and self.of(mode, [module]).keys() >= set(names)

    def _names(self, mode: str, module: str) -> list[str]:
        path = self.path(mode, module).with_suffix(".jsonl.names")
        return [each.removeprefix(_PREFIX) for each in lines(path)] if path.exists() else []

    def fails_more_often(self, test: str) -> bool:
        """True when, run alone, *test* passes less often with ours; without an end it fails.

        So it is where nobody knows if it passes with Nova's scheduler.
        """
        has_ended = bool(self._alone(NOVA, test))
        return not has_ended or self.passes_alone(OURS, test) < self.passes_alone(NOVA, test)

    def passes_alone(self, mode: str, test: str) -> int:
        """How often *test* passed when it ran alone."""
        return self._alone(mode, test).count(PASSED)

    def is_skipped_alone(self, test: str) -> bool:
        """True when *test* is skipped with Nova's scheduler."""
        return set(self._alone(NOVA, test)) == {SKIPPED}

    def _alone(self, mode: str, test: str) -> list[str]:
        files = (self._of_mode[mode] / "alone").glob(f"{test}.*.jsonl")
        return [row["outcome"] for path in files for row in read(path).values()]


def text(
    found: Results, units: Sequence[str], inside: Mapping[str, str], doubtful: Collection[str]
) -> str:
    """What there is to tell: a table of the modules, and what became of the *doubtful* tests."""
    rows, totals = [], [0, 0, 0, 0]
    for unit in units:
        ours, novas = found.of(OURS, [unit]), found.of(NOVA, [unit])
        numbers = [
            len(ours),
            sum(row["outcome"] == PASSED for row in novas.values()),
            sum(row["outcome"] == PASSED for row in ours.values()),
            sum(row["counts"].get(DECISIONS, 0) for row in ours.values()),
        ]
        if numbers[0]:
            rows.append([unit, *_shown(numbers, has_novas=bool(novas))])
            totals = [before + more for before, more in zip(totals, numbers, strict=True)]
    rows.append(["**all**", *_shown(totals, has_novas=bool(found.of(NOVA, units)))])
    items = [f"* `{test}`: {_cause(found, test, inside)}\n" for test in sorted(doubtful)]
    heading = "\nNot passed with ours:\n\n" if items else ""
    return table(_HEAD, rows) + heading + "".join(items)


def _shown(numbers: Sequence[int], *, has_novas: bool) -> list[str]:
    ran, novas, *ours = map(str, numbers)
    return [ran, novas if has_novas else "not run", *ours]


def _cause(found: Results, test: str, inside: Mapping[str, str]) -> str:
    if test in inside:
        return f"looks inside: {inside[test]}"
    if found.fails_more_often(test):
        return "**red**"
    if found.is_skipped_alone(test):
        return "skipped with Nova's scheduler, too"
    is_good = found.passes_alone(OURS, test)
    return "passes alone" if is_good else "does not pass with Nova's scheduler, either"
