"""One workload under several configurations, request by request, and as one document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scheduler.replay.run import Run
from scheduler.replay.virtual_fleet import Outcome
from scheduler.replay.workload import Arrival, Workload


@dataclass(slots=True)
class Difference:
    """Requests of one configuration against those of the first one."""

    requests: int = 0
    elsewhere: int = 0
    refused_here_only: int = 0
    refused_there_only: int = 0
    first: dict[str, Any] | None = None

    def add(self, hosts: Sequence[str], others: Sequence[str]) -> bool:
        """Count one request, chosen *hosts* by the first and *others* here; True if they differ."""
        self.requests += 1
        if hosts == others:
            return False
        self.elsewhere += bool(hosts and others)
        self.refused_here_only += not others
        self.refused_there_only += not hosts
        return True


class Comparison:
    """Runs of one workload, by the name of their configuration, in lockstep.

    Where they part for the first time, both decisions are explained.
    """

    def __init__(self, runs: Mapping[str, Run]) -> None:
        self.runs = runs
        (self._first, self._run), *self._others = runs.items()
        self.differences = {name: Difference() for name, _run in self._others}

    def play(self, arrivals: Iterable[Arrival]) -> None:
        """Play all *arrivals* in each run."""
        for arrival in arrivals:
            self._run.go_to(arrival.at)
            outcome = self._run.ask(arrival)
            for name, run in self._others:
                run.go_to(arrival.at)
                other = run.ask(arrival)
                difference = self.differences[name]
                if difference.add(_hosts(outcome), _hosts(other)) and difference.first is None:
                    difference.first = {
                        "request": arrival.name,
                        "at": round(arrival.at, 3),
                        "flavor": arrival.flavor.name,
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
            "differences": [
                {
                    "between": [self._first, name],
                    "requests": each.requests,
                    "elsewhere": each.elsewhere,
                    "refused_only_by": {
                        self._first: each.refused_there_only,
                        name: each.refused_here_only,
                    },
                    "first": each.first,
                }
                for name, each in self.differences.items()
            ],
        }


def _hosts(outcome: Outcome) -> list[str]:
    return [each.key[0] for each in outcome.servers]
