"""What became of one case: the line to write, and how it compares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scheduler.evaluation import behaviour, comparing, listed
from scheduler.evaluation.calculating import calculate
from scheduler.evaluation.cases import Case, Example
from scheduler.evaluation.configuration import Configuration
from scheduler.evaluation.deciding import decide
from scheduler.evaluation.recording import Answer

NOTHING_EXPECTED = "the case says nothing of what to expect"
SUITE_OF_EXAMPLES = "numa_pci_examples"
#: What the answers of one release do not carry.
LEFT_OUT_OF_EXAMPLES = {behaviour.CURRENT.name: frozenset({"cpu_topology"})}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One line to write, and how it differs from what was recorded."""

    name: str
    suite: str
    line: Mapping[str, Any]
    differences: list[str]
    #: Nova failed there with an unhandled exception, and the case says so.
    is_crash: bool = False

    @property
    def reason_for_difference(self) -> str | None:
        """Why the case is decided otherwise on purpose, if it is."""
        return listed.REASONS.get(self.name) or (listed.GENTLER if self.is_crash else None)


class Evaluation:
    """Decides one case after the other."""

    def __init__(self, wanted: str = behaviour.ALL) -> None:
        self.wanted = wanted
        self._configuration = Configuration()

    def outcomes(self, item: Case | Example) -> Iterator[Outcome]:
        """Decide *item* as its label says, as far as the behaviour is the *wanted* one."""
        if isinstance(item, Example):
            yield from _of_example(item, self.wanted)
            return
        behaviours = behaviour.of_case(item, self.wanted)
        if behaviours:
            answers = {each.name: decide(item, each, self._configuration) for each in behaviours}
            differences = _differences(item, answers)
            crash = bool((item.expected or {}).get("crash"))
            yield Outcome(item.name, item.suite, _line(item, answers), differences, crash)


def _of_example(example: Example, wanted: str) -> Iterator[Outcome]:
    for label, expected in example.expected.items():
        for each in behaviour.OF_LABEL[label]:
            if wanted not in (behaviour.ALL, each.name):
                continue
            name = f"{SUITE_OF_EXAMPLES}/{example.name}@{label}"
            left_out = LEFT_OUT_OF_EXAMPLES.get(label, frozenset())
            answer = calculate(example.kind, example.given, each.numa)
            different = comparing.example_differences(expected, answer, left_out)
            yield Outcome(name, SUITE_OF_EXAMPLES, {"name": name, **answer}, different)


def _line(case: Case, answers: Mapping[str, Answer]) -> dict[str, Any]:
    """The first answer; those of behaviours that disagree with it under ``disagreement``."""
    (_name, first), *others = answers.items()
    disagreeing = {name: answer for name, answer in others if comparing.differences(first, answer)}
    line = {"name": case.name, **first}
    return {**line, "disagreement": disagreeing} if disagreeing else line


def _differences(case: Case, answers: Mapping[str, Answer]) -> list[str]:
    """How the answers differ from what was recorded; what all share comes once."""
    expected = case.expected
    if expected is None:
        return [NOTHING_EXPECTED]
    found = {name: comparing.differences(expected, answer) for name, answer in answers.items()}
    if len({tuple(lines) for lines in found.values()}) == 1:
        return next(iter(found.values()))
    return [f"as {name}: {line}" for name, lines in found.items() for line in lines]
