"""One evaluation for everything: what filters and weighers say of every host, for one request.

Nothing else in the tree filters or weighs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scheduler.engine.filtering import FilterChain, FilterCount
from scheduler.engine.record import NOT_ASKED, PASSES, Verdict, Verdicts
from scheduler.engine.weighing import Part, weigh
from scheduler.hosts.candidates import Candidates
from scheduler.hosts.fitting import Fitting
from scheduler.semantics import CURRENT, Semantics
from scheduler.weights.base import BaseHostWeigher


@dataclass(frozen=True, slots=True)
class Policy:
    """How the driver was configured to choose."""

    chain: FilterChain
    weighers: Sequence[BaseHostWeigher]
    host_subset_size: int = 1
    shuffle_best_same_weighed_hosts: bool = False
    service_down_time_seconds: float = 60.0
    semantics: Semantics = CURRENT
    fitting: Fitting = Fitting()
    most_seconds: float = math.inf


@dataclass(slots=True)
class Evaluation:
    """The hosts that pass, in the order given, their total weights, and why the others do not."""

    hosts: Candidates
    counts: list[FilterCount] = field(default_factory=list)
    totals: np.ndarray = field(default_factory=lambda: np.zeros(0))
    parts: list[Part] = field(default_factory=list)
    #: By row of the host table; see ``Verdicts``.
    of_row: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))
    reasons: list[Verdict] = field(default_factory=list)

    def note(self, number: int, code: str, rows: np.ndarray) -> None:
        """Filter *number* removes *rows* for the reason *code*."""
        if (number, code) not in self.reasons:
            self.reasons.append((number, code))
        self.of_row[rows] = self.reasons.index((number, code)) + 1

    def places(self, rows: list[int]) -> np.ndarray:
        """The places of *rows* among the hosts that pass."""
        if isinstance(self.hosts.at, slice):
            return np.array(rows)
        places = np.zeros(len(self.of_row), dtype=np.int64)
        places[self.hosts.rows] = np.arange(len(self.hosts))
        found: np.ndarray = places[rows]
        return found

    def totals_of_rows(self) -> np.ndarray:
        """The totals by row of the host table, -inf for hosts that do not pass."""
        found = np.full(len(self.of_row), -np.inf)
        found[self.hosts.at] = self.totals
        return found

    def verdicts(self, policy: Policy) -> Verdicts:
        """What a record keeps of the filters; weights are added when they are known."""
        version, filters = self.hosts.scope.table.version, policy.chain.filters
        return Verdicts(self.of_row, self.reasons, np.zeros(0), filters, version)


def filtered(
    policy: Policy,
    hosts: Candidates,
    request: Any,
    index: int = 0,
    *,
    skip_filters: bool = False,
    after: Callable[[str], None] | None = None,
) -> Evaluation:
    """What the filters say of *hosts* for instance number *index* of the *request*."""
    evaluation = Evaluation(hosts)
    evaluation.of_row = np.full(hosts.scope.table.capacity, NOT_ASKED, dtype=np.uint8)
    evaluation.of_row[hosts.at] = PASSES
    if not skip_filters:
        evaluation.hosts, evaluation.counts = policy.chain.run(
            hosts, request, index, evaluation.note, after
        )
    return evaluation


def evaluate(
    policy: Policy, hosts: Candidates, request: Any, index: int = 0, *, skip_filters: bool = False
) -> Evaluation:
    """What filters and weighers say of *hosts* for instance number *index* of the *request*."""
    evaluation = filtered(policy, hosts, request, index, skip_filters=skip_filters)
    add_weights(policy, evaluation, request)
    return evaluation


def add_weights(policy: Policy, evaluation: Evaluation, request: Any) -> None:
    """Weigh the hosts that pass."""
    evaluation.totals, evaluation.parts = weigh(
        policy.weighers, evaluation.hosts, request, policy.semantics
    )
