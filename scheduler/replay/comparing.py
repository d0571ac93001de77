"""One workload under several configurations, request by request, and as one document."""

from collections.abc import Iterable, Mapping
from typing import Any

from scheduler.replay.run import Run
from scheduler.replay.virtual_fleet import Outcome
from scheduler.replay.workload import Arrival, Workload


class Comparison:
    """Runs of one workload, by the name of their configuration, in lockstep.

    Where they part for the first time, both decisions are explained.
    """

    def __init__(self, runs: Mapping[str, Run]) -> None:
        self.runs = runs
        (self._first, self._run), *self._others = runs.items()
        #: By configuration, its requests against those of the first one.
        self._differences: dict[str, dict[str, Any]] = {
            name: {
                "between": [self._first, name],
                "requests": 0,
                "elsewhere": 0,
                "refused_only_by": {self._first: 0, name: 0},
                "first": None,
            }
            for name, _run in self._others
        }

    def play(self, arrivals: Iterable[Arrival]) -> None:
        """Play all *arrivals* in each run."""
        for arrival in arrivals:
            self._run.go_to(arrival.at)
            outcome = self._run.ask(arrival)
            for name, run in self._others:
                run.go_to(arrival.at)
                other, found = run.ask(arrival), self._differences[name]
                found["requests"] += 1
                if _hosts(outcome) == _hosts(other):
                    continue
                found["elsewhere"] += not (outcome.is_refused or other.is_refused)
                found["refused_only_by"][self._first] += outcome.is_refused
                found["refused_only_by"][name] += other.is_refused
                if found["first"] is None:
                    found["first"] = {
                        "request": arrival.name,
                        "at": round(arrival.at, 3),
                        "flavor": arrival.flavor_name,
                        "servers": arrival.count,
                        self._first: self._run.explain_again(outcome),
                        name: run.explain_again(other),
                    }

    def document(self, workload: Workload, about: Mapping[str, Any]) -> dict[str, Any]:
        """Everything that was found, the same to the byte for the same input."""
        return {
            **about,
            "workload": workload.source,
            "notes": workload.notes,
            "configurations": {name: run.result() for name, run in self.runs.items()},
            "differences": list(self._differences.values()),
        }


def _hosts(outcome: Outcome) -> list[str]:
    return [each.key[0] for each in outcome.servers]
