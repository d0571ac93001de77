"""Records of decisions: enough to say why, cheap enough to keep for each.

Counts are of hosts.  For the first instance the hosts never considered, those removed before any
filter, the counts per (filter, reason) and the hosts left always add up to the fleet.
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

import numpy as np

from scheduler.engine.evaluation import PASSES, Evaluation, FilterCount, Part, Verdict
from scheduler.filters.base import BaseHostFilter

Pair = tuple[str, str | None]
"""Host and node."""

#: Outcome of a request that got its hosts; the others are codes of errors (``errors.CODES``).
SELECTED = "selected"
#: Reasons why hosts are no candidates: nothing says that a compute service runs there; Placement
#: did not offer them.
NO_SERVICE, NOT_OFFERED = "service.unknown", "placement.not_offered"
#: The stages that are timed: waiting for fresh state, filtering, weighing, claiming, and the
#: second and later instances.
REFRESH, FILTER, WEIGH, CLAIM, LATER = "refresh", "filter", "weigh", "claim", "later_instances"
#: Kinds of calls to Placement: questions about one host, lists for the fleet, reads of allocations,
#: claims, ends of claims, and what is learned of providers.
QUESTION, LIST, READ, PUT, GIVE_BACK, LOOK = PLACEMENT_CALLS = (
    *("question", "list", "read", "claim", "give_back", "look"),
)
#: So many of the best hosts are noted with what their weights are made of.
TOP_HOSTS: Final = 16


@dataclass(slots=True)
class Top:
    """The hosts first in order, the chosen one before all, and each weigher's numbers for them.

    Without parts nothing was weighed: there was one host, or none of the weighers.
    """

    pairs: Sequence[Pair]
    totals: Sequence[float]
    parts: Sequence[Part]

    def rows(self) -> list[dict[str, Any]]:
        """Host, node, total and, per weigher, raw, normalised, multiplier and weighted value."""
        return [
            {
                "host": host,
                "node": node,
                "total": float(self.totals[place]),
                "weighers": [share_of(each, place) for each in self.parts],
            }
            for place, (host, node) in enumerate(self.pairs)
        ]


def share_of(part: Part, place: int) -> dict[str, Any]:
    """One weigher's share of the total of the host at *place*."""
    one = part.at(np.array([place]))
    factor = one.multiplier
    return {
        "name": one.name,
        "raw": float(one.raw[0]),
        "normalised": float(one.normalised[0]),
        "multiplier": float(factor[0]) if isinstance(factor, np.ndarray) else factor,
        "weighted": float(one.weighted[0]),
    }


@dataclass(slots=True)
class Verdicts:
    """Verdicts of the decision for the first instance, by row of the host table."""

    #: Small integers: PASSES, NOT_ASKED, or the place in ``reasons`` of what removed the host, +1.
    of_row: np.ndarray
    reasons: list[Verdict]
    #: Total weight of those that pass; void for all others.
    totals: np.ndarray
    #: The filters of the chain.
    filters: Sequence[BaseHostFilter]
    #: The table's version at that time.
    version: int
    #: Bounds between which each weigher's raw values were put.
    bounds: Sequence[Any] = ()

    @classmethod
    def from_evaluation(cls, found: Evaluation, filters: Sequence[BaseHostFilter]) -> Self:
        """Verdicts of the filters; weights are added when they are known."""
        version = found.hosts.scope.table.version
        return cls(found.of_row, found.reasons, np.zeros(0), filters, version)

    @property
    def nbytes(self) -> int:
        return self.of_row.nbytes + self.totals.nbytes + 100 * len(self.reasons)

    def removed(self) -> list[tuple[Verdict, np.ndarray]]:
        """Per reason the rows that were removed for it, in the order of the chain."""
        found = [
            (reason, np.flatnonzero(self.of_row == number))
            for number, reason in enumerate(self.reasons, start=1)
        ]
        return sorted(found, key=lambda each: each[0])

    def ranked(self) -> np.ndarray:
        """The rows that passed, by weight; equal ones by row number."""
        rows = np.flatnonzero(self.of_row == PASSES)
        return rows[np.argsort(-self.totals[rows], kind="stable")]


@dataclass(slots=True)
class PlacementUse:
    #: Kind and seconds of each call.
    calls: list[tuple[str, float]]
    #: Hosts that were asked about, one by one.
    asked: list[str] = field(default_factory=list)
    #: Those refused, each with the reason; that is found beside the request, or stays empty.
    refused: dict[str, str] = field(default_factory=dict)
    #: True when it did not answer, or not as it should.
    is_unanswered: bool = False
    #: True when it offered candidates.
    has_offered: bool = False

    @property
    def is_in_vain(self) -> bool:
        """True when it was asked for candidates and offered none."""
        return not self.has_offered and any(kind in (QUESTION, LIST) for kind, _spent in self.calls)

    def to_dict(self) -> dict[str, Any]:
        """All of it, the calls as their number by kind and the time they took together."""
        seconds = sum(seconds for _kind, seconds in self.calls)
        counts = dict(Counter(kind for kind, _seconds in self.calls))
        hosts = {"asked": list(self.asked), "refused": dict(self.refused)}
        return {"calls": counts, "ms": round(seconds * 1000, 3), **hosts}


@dataclass(slots=True)
class DecisionRecord:
    """One request's way through the scheduler."""

    request_id: str | None
    instance_uuids: tuple[str, ...]
    num_instances: int
    seed: int
    #: Class name of the driver.
    driver: str = ""
    started_at: float = field(default_factory=time.time)
    #: Compute nodes known, whether or not they were considered.
    fleet: int = 0
    #: Of those the ones that no filter was asked about, per cause.
    never_evaluated: dict[str, int] = field(default_factory=dict)
    hosts_considered: int = 0
    #: True when forced hosts were taken without asking any filter.
    filters_skipped: bool = False
    #: Counts of the first instance's run, in chain order; empty where forcing skipped them.
    filters: list[FilterCount] = field(default_factory=list)
    #: Host and node per instance, in order; empty when the request failed.
    chosen: list[Pair] = field(default_factory=list)
    #: Per instance the hosts to try when the chosen one fails, best first.
    alternates: list[list[Pair]] = field(default_factory=list)
    #: Age of the state decided on, in seconds; None when nothing was ever read.
    state_age_seconds: float | None = None
    #: uuids of the cells whose hosts were left out because they did not answer.
    cells_left_out: tuple[str, ...] = ()
    #: Outcome of the claim: booked, repeated or lost; None where nothing was claimed.
    claim: str | None = None
    #: Number of decisions made anew because others had claimed what was chosen.
    races_lost: int = 0
    #: None where Placement does not keep the claims.
    placement: PlacementUse | None = None
    #: Milliseconds per stage.  What is missing of the total is the rest: choosing, consuming,
    #: making the answer.
    stages_ms: dict[str, float] = field(default_factory=dict)
    elapsed_ms: float = 0.0
    #: ``selected``, or the code of the error.
    outcome: str = SELECTED
    #: The error's text, with what is behind it where the caller does not get that.
    failure: str | None = None
    #: Name of an internal fault in the log.
    fault_id: str | None = None
    #: Its number among all records of the worker, from 1 on.
    sequence: int = 0
    #: The request as it came; not to be changed.
    request: Any = None
    #: True when what costs memory and a little time is wanted, too.
    wants_detail: bool = False
    top: Top | None = None
    #: Reason why there was no host.
    refusal: Any = None
    #: Reasons why hosts were removed before any filter, where that left none.
    before_filters: list[Any] = field(default_factory=list)
    #: Verdict on every host; None if that was not wanted, or had to make room.
    verdicts: Verdicts | None = None
    #: The hosts that the chance driver drew from; one may be among them more than once.
    drawn_from: tuple[str, ...] = ()
    #: True when weights alone decided about every instance: nothing was drawn, no two were equal.
    by_weight_alone: bool = True

    @property
    def hosts_left(self) -> int:
        """Hosts left for the first instance after everything."""
        if self.filters:
            return self.filters[-1].end
        return self.fleet - sum(self.never_evaluated.values())

    def add_stage(self, name: str, began: float) -> float:
        """Add what has passed since *began* (``time.perf_counter``) to a stage; returns now."""
        now = time.perf_counter()
        self.stages_ms[name] = self.stages_ms.get(name, 0.0) + (now - began) * 1000
        return now

    def note_chosen(self, selections: Sequence[Any]) -> None:
        """Take the hosts from an answer: per instance Selections, the chosen first."""
        pairs = [[(each.service_host, each.nodename) for each in row] for row in selections]
        self.chosen = [first for first, *_others in pairs]
        self.alternates = [others for _first, *others in pairs]
