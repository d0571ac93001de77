"""What became of one case: the line to write, and how it compares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scheduler.evaluation import comparing, listed
from scheduler.evaluation.behaviour import Behaviour
from scheduler.evaluation.cases import Case
from scheduler.evaluation.deciding import decide
from scheduler.evaluation.recording import Answer

NOTHING_EXPECTED = "the case says nothing of what to expect"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answers to one case by the name of the behaviour, the one to write first."""

    case: Case
    answers: Mapping[str, Answer]

    @classmethod
    def of(cls, case: Case, behaviours: Sequence[Behaviour]) -> Outcome:
        """Decide *case* under each of the *behaviours*."""
        return cls(case, {each.name: decide(case, each) for each in behaviours})

    def line(self) -> dict[str, Any]:
        """The answer; where the behaviours disagree, the others' under ``disagreement``."""
        (_name, first), *others = self.answers.items()
        line = {"name": self.case.name, **first}
        disagreeing = {
            name: answer for name, answer in others if comparing.differences(first, answer)
        }
        return {**line, "disagreement": disagreeing} if disagreeing else line

    def differences(self) -> list[str]:
        """How the answers differ from what was recorded; those that all share come once."""
        expected = self.case.expected
        if expected is None:
            return [NOTHING_EXPECTED]
        found = {
            name: comparing.differences(expected, answer) for name, answer in self.answers.items()
        }
        if len({tuple(lines) for lines in found.values()}) == 1:
            return next(iter(found.values()))
        return [f"as {name}: {line}" for name, lines in found.items() for line in lines]

    @property
    def reason_for_difference(self) -> str | None:
        """Why the case is decided otherwise on purpose, if it is."""
        return listed.REASONS.get(self.case.name)
