"""Writing down a decision while it is made, in the words of the format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from scheduler import objects
from scheduler.explain.watcher import Watcher
from scheduler.hosts.candidates import Candidates
from scheduler.hosts.host_state import HostState
from scheduler.weights.weighing import Weighed

Answer = dict[str, Any]


class Recording(Watcher):
    """What is noted of one request: ``answer`` for the first instance, ``forced`` for all."""

    def __init__(self, host_subset_size: int) -> None:
        self.host_subset_size = host_subset_size
        self.answer: Answer = {}
        #: Whether nothing was left to chance or to the order of equals.
        self.forced = True

    def filtered(self, index: int, name: str, hosts: Candidates) -> None:
        """Note the hosts left for the first instance."""
        if index == 0:
            steps = self.answer.setdefault("filters", [])
            steps.append({"name": name, "passed": pairs(hosts)})

    def passed(
        self, index: int, hosts: Candidates, limits_of: Callable[[HostState], dict[str, Any]]
    ) -> None:
        """Note the hosts and limits of the first instance; a later call for it changes nothing."""
        if index > 0 or "passed" in self.answer:
            return
        self.answer.setdefault("filters", [])
        self.answer["passed"] = pairs(hosts)
        limits = {name_of(state): limits_of(state) for state in hosts.states()}
        self.answer["limits"] = {
            name: objects.to_plain(each) for name, each in limits.items() if each
        }

    def weighed(self, index: int, weighed: Weighed, claimable: np.ndarray) -> None:
        """Note the weights of the first instance, and whether the best host stands out."""
        best = weighed.totals[claimable][:2]
        if len(best) > 1 and (self.host_subset_size > 1 or best[0] == best[1]):
            self.forced = False
        if index == 0 and "weights" not in self.answer:
            totals = weighed.totals.tolist()
            states = weighed.hosts.states()
            self.answer["weights"] = dict(zip(map(name_of, states), totals, strict=True))

    def drawn_from(self, hosts: Sequence[str]) -> None:
        """Note the hosts that the chance driver may draw."""
        self.answer["passed"] = [[host, None] for host in sorted(hosts)]
        self.forced = len(set(hosts)) == 1


def name_of(state: HostState) -> str:
    """How the format names a host where pairs cannot stand."""
    return f"{state.host}/{state.nodename}"


def pairs(hosts: Candidates) -> list[list[str | None]]:
    """Host and node of each, sorted."""
    return sorted([state.host, state.nodename] for state in hosts.states())
