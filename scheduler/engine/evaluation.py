"""One evaluation for everything: what filters and weighers say of every host, for one request.

Nothing else in the tree filters or weighs.  Reference pages filters, and scheduling, sections 7.1
and 7.2.
"""

import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scheduler import errors
from scheduler.filters.base import BaseHostFilter, HostFilter, Reason
from scheduler.hosts.candidates import Candidates, Scope, request_is_rebuild
from scheduler.hosts.host_state import Fitting
from scheduler.hosts.table import HostTable
from scheduler.semantics import CURRENT, Semantics
from scheduler.weights.base import BaseHostWeigher

LOG = logging.getLogger(__name__)

#: Verdicts that are no reasons: the host passes; no filter was asked about it.
PASSES, NOT_ASKED = 0, 65535

Bounds = tuple[float, float]
"""Between these a weigher's raw values are put."""

Verdict = tuple[int, str]
"""Number of the filter in the chain, and reason code."""


@dataclass(slots=True)
class FilterCount:
    """One filter's effect: hosts before and after, and removed per reason code."""

    name: str
    start: int
    end: int
    removed: dict[str, int] = field(default_factory=dict)


class FilterChain:
    """The enabled filters in order."""

    def __init__(self, filters: Sequence[BaseHostFilter]) -> None:
        self.filters = tuple(filters)
        self._plan = [(n, each, each.name, is_columnar(each)) for n, each in enumerate(filters)]
        self._limiting = [
            each
            for each in self.filters
            if isinstance(each, HostFilter) and type(each).limits is not HostFilter.limits
        ]

    def run(
        self,
        hosts: Candidates,
        request: Any,
        index: int = 0,
        *,
        skip_filters: bool = False,
        after: Callable[[str], None] | None = None,
    ) -> "Evaluation":
        """Ask the filters about *hosts* for instance number *index*; nothing is weighed yet.

        Stops at the filter that leaves nothing.  The removed counts of a filter always add up
        to ``start - end``.  *after* is called with the name of each filter that has run.
        """
        found = Evaluation(hosts)
        found.of_row = np.full(hosts.scope.table.capacity, NOT_ASKED, dtype=np.uint16)
        found.of_row[hosts.at] = PASSES
        is_rebuild = request_is_rebuild(request)
        for number, each, name, columnar in () if skip_filters else self._plan:
            if not each.run_filter_for_index(index):
                continue
            start = len(found.hosts)
            removed: dict[str, int] = {}
            try:
                if not columnar:
                    removed = _apply_rows(each, found, request, number)
                elif each.RUN_ON_REBUILD or not is_rebuild:
                    removed = _apply_columns(each, found, request, number)
            except errors.NovaException:
                raise
            except Exception as error:
                raise errors.ExtensionFailed.from_error(error, name) from error
            found.counts.append(FilterCount(name, start, len(found.hosts), removed))
            if after is not None:
                after(name)
            if not len(found.hosts):
                break
        return found

    @property
    def asks_only_columns(self) -> bool:
        """True when all filters that run for later instances are written over columns."""
        return all(
            columnar or each.run_filter_once_per_request for _, each, _, columnar in self._plan
        )

    def passing(self, hosts: Candidates, request: Any) -> np.ndarray:
        """Mask of those of *hosts* that pass all filters of later instances, which are columnar."""
        passing = hosts.everything(True)
        for _number, each, _name, columnar in self._plan:
            if not columnar or not each.run_filter_for_index(1) or each.is_bypassed(request):
                continue
            for _reason, satisfied in each.conditions(hosts, request):  # type: ignore[attr-defined]
                passing &= satisfied
        return passing

    def limits(self, host_state: Any, request: Any) -> dict[str, Any]:
        """Limits that the filters put on *host_state*, those of row-by-row filters included."""
        limits: dict[str, Any] = {}
        for each in self._limiting:
            if not each.is_bypassed(request):
                try:
                    limits.update(each.limits(host_state, request))
                except Exception as error:
                    name = type(each).__name__
                    raise errors.ExtensionFailed.from_error(error, name, host_state.host) from error
        limits.update(host_state.limits)
        return limits


def is_columnar(each: BaseHostFilter) -> bool:
    """True when the conditions of *each* are all that it does."""
    kind, own = type(each), ("filter_all", "_filter_one", "run_filter_for_index")
    return (
        isinstance(each, HostFilter)
        and kind.host_passes is HostFilter.host_passes
        and all(getattr(kind, name) is getattr(BaseHostFilter, name) for name in own)
    )


def _apply_columns(each: Any, found: "Evaluation", request: Any, number: int) -> dict[str, int]:
    hosts, alive = found.hosts, None
    removed: dict[str, int] = {}
    for reason, gone in rejections(each, hosts, request):
        alive = ~gone if alive is None else alive & ~gone
        removed[reason.code] = removed.get(reason.code, 0) + int(np.count_nonzero(gone))
        found.note(number, reason.code, hosts.rows[gone])
    if alive is not None:
        found.hosts = hosts.take(alive)
    return removed


def rejections(
    each: HostFilter, hosts: Candidates, request: Any
) -> Iterator[tuple[Reason, np.ndarray]]:
    """Per reason the mask of the hosts that *each* removes for it; every host at most once."""
    alive: np.ndarray | None = None
    for reason, satisfied in each.conditions(hosts, request):
        if len(satisfied) and satisfied[satisfied.argmin()]:  # quicker than all() of few
            continue
        removed = ~satisfied if alive is None else alive & ~satisfied
        if removed.any():
            alive = ~removed if alive is None else alive & satisfied
            yield reason, removed


def _apply_rows(
    each: BaseHostFilter, found: "Evaluation", request: Any, number: int
) -> dict[str, int]:
    passing, refused = each.ask_each(found.hosts, request)
    found.hosts = Candidates(found.hosts.scope, np.array(passing, dtype=np.int64))
    for code, rows in refused.items():
        found.note(number, code, np.array(rows))
    return {code: len(rows) for code, rows in refused.items()}


def log_counts(counts: Sequence[FilterCount], uuid: str) -> None:
    """Log, once per decision, what operators of Nova search for (filters page, section 3.3)."""
    if LOG.isEnabledFor(logging.DEBUG) and counts:
        LOG.debug("Starting with %d host(s)", counts[0].start)
        for count in counts:
            if count.end:
                LOG.debug("Filter %s returned %d host(s)", count.name, count.end)
    if counts and not counts[-1].end:
        LOG.info("Filter %s returned 0 hosts", counts[-1].name)
        LOG.info(
            "Filtering removed all hosts for the request with instance ID '%s'. Filter results: %s",
            uuid,
            [f"{count.name}: (start: {count.start}, end: {count.end})" for count in counts],
        )


# --- weighing -------------------------------------------------------------------------------------


@dataclass(slots=True)
class Part:
    """One weigher's numbers for some hosts, in their order, and its bounds over all candidates.

    A multiplier that is a single number is that of every host.
    """

    name: str
    raw: np.ndarray
    multiplier: np.ndarray | float
    bounds: Bounds

    @property
    def normalised(self) -> np.ndarray:
        """The raw values between 0 and 1; those outside the bounds count as the bound."""
        return weighted(self.raw, self.bounds, 1.0, extremes(self.raw))

    @property
    def weighted(self) -> np.ndarray:
        return weighted(self.raw, self.bounds, self.multiplier, extremes(self.raw))

    def at(self, places: np.ndarray) -> "Part":
        return Part(self.name, self.raw[places], some(self.multiplier, places), self.bounds)


def some(factor: Any, places: np.ndarray) -> Any:
    """The *factor* of the hosts at *places*, where it is not one for all."""
    return factor[places] if isinstance(factor, np.ndarray) else factor


def weighted(
    raw: np.ndarray, bounds: Bounds, multiplier: np.ndarray | float, ends: Bounds
) -> np.ndarray:
    """Map *raw*, of which *ends* are least and most, to 0…1 between the bounds, and multiply.

    Values outside the bounds count as the bound they exceed; equal bounds give zeros.
    """
    low, high = bounds
    if low == high:
        return np.zeros(len(raw))
    if ends[0] < low or ends[1] > high:
        raw = np.clip(raw.astype(np.float64), low, high)
    return share(raw, low, high, multiplier)


def share(raw: Any, low: float, high: float, multiplier: Any) -> Any:
    """The weighing formula, for one number or for an array, between the bounds."""
    found = (raw - low if low else raw) / (high - low)
    if isinstance(multiplier, np.ndarray) or multiplier != 1.0:
        found *= multiplier
    return found


def extremes(values: np.ndarray) -> tuple[float, float]:
    """Least and most of the *values*, of which there must be one."""
    if values.strides == (0,):  # one value for all hosts
        only = float(values.item(0))
        return only, only
    # The places first: of integers half the time of min() and max().
    return float(values[values.argmin()]), float(values[values.argmax()])


def weigh(
    weighers: Sequence[BaseHostWeigher], hosts: Candidates, request: Any, semantics: Semantics
) -> tuple[np.ndarray, list[Part]]:
    """Total weight of each of *hosts*, and what the totals are made of.

    Fewer than two hosts are not weighed and have weight 0.0.  Parts are added in the configured
    order, in doubles; a weigher that is constant over the hosts adds nothing.
    """
    totals, parts = np.zeros(len(hosts)), list[Part]()
    if len(hosts) < 2:
        return totals, parts
    for each in weighers:
        try:
            raw, factor = each.raw(hosts, request), each.multipliers(hosts)
        except errors.NovaException:
            raise
        except Exception as error:
            raise errors.ExtensionFailed.from_error(error, each.name) from error
        ends = extremes(raw)
        bounds = bounds_for(each, ends, semantics)
        parts.append(Part(each.name, raw, factor, bounds))
        if bounds[0] != bounds[1]:
            totals += weighted(raw, bounds, factor, ends)
    return totals, parts


def bounds_for(weigher: BaseHostWeigher, ends: Bounds, semantics: Semantics) -> Bounds:
    """The bounds of raw values with these *ends*: those that *weigher* declares go before them.

    A weigher that remembers carries the widest ends of all decisions.
    """
    low, high = weigher.minval, weigher.maxval
    if semantics.remembers_bounds:
        low = weigher.minval = ends[0] if low is None else min(low, ends[0])
        high = weigher.maxval = ends[1] if high is None else max(high, ends[1])
    if low is None:
        low = ends[0] if high is None else min(ends[0], high)
    if high is None:
        high = max(ends[1], low)
    return float(low), float(high)


def bounds_of(weighers: Sequence[BaseHostWeigher]) -> list[tuple[float | None, float | None]]:
    """The bounds that *weighers* carry, to be given back to them by ``restore_bounds``."""
    return [(each.minval, each.maxval) for each in weighers]


def restore_bounds(
    weighers: Sequence[BaseHostWeigher], bounds: list[tuple[float | None, float | None]]
) -> None:
    """Make *weighers* forget what they have seen since *bounds* were theirs."""
    for each, (low, high) in zip(weighers, bounds, strict=True):
        if (each.minval, each.maxval) != (low, high):
            each.minval, each.maxval = low, high


@dataclass(frozen=True, slots=True)
class Policy:
    """Filters, weighers and rules of choice, as the driver is configured."""

    chain: FilterChain
    weighers: Sequence[BaseHostWeigher]
    host_subset_size: int = 1
    shuffle_best_same_weighed_hosts: bool = False
    service_down_time_seconds: float = 60.0
    semantics: Semantics = CURRENT
    fitting: Fitting = Fitting()
    most_seconds: float = math.inf

    def scope(self, table: HostTable, now: float, spent_seconds: float = 0.0) -> Scope:
        """The scope of a decision whose request took *spent_seconds* to decide before."""
        ends_at = time.monotonic() + self.most_seconds - spent_seconds
        down_seconds = self.service_down_time_seconds
        return Scope(table, now, down_seconds, self.fitting, self.most_seconds, ends_at)


@dataclass(slots=True)
class Evaluation:
    """The hosts that pass, in the order given, their total weights, and why the others do not."""

    hosts: Candidates
    counts: list[FilterCount] = field(default_factory=list)
    totals: np.ndarray = field(default_factory=lambda: np.zeros(0))
    parts: list[Part] = field(default_factory=list)
    #: By row of the host table: PASSES, NOT_ASKED, or the place in ``reasons``, + 1.
    of_row: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.uint16))
    reasons: list[Verdict] = field(default_factory=list)

    def note(self, number: int, code: str, rows: np.ndarray) -> None:
        """Filter *number* removes *rows* for the reason *code*."""
        if (number, code) not in self.reasons:
            self.reasons.append((number, code))
        self.of_row[rows] = self.reasons.index((number, code)) + 1

    def places(self, rows: list[int]) -> np.ndarray:
        if isinstance(self.hosts.at, slice):
            return np.array(rows)
        places = np.zeros(len(self.of_row), dtype=np.int64)
        places[self.hosts.rows] = np.arange(len(self.hosts))
        return places[rows]

    def totals_of_rows(self) -> np.ndarray:
        """The totals by row of the host table; what it says of hosts that do not pass is void."""
        if isinstance(self.hosts.at, slice):
            return self.totals
        found = np.full(len(self.of_row), -np.inf)
        found[self.hosts.at] = self.totals
        return found


def evaluate(
    policy: Policy, hosts: Candidates, request: Any, index: int = 0, *, skip_filters: bool = False
) -> Evaluation:
    """Ask filters and weighers about *hosts* for instance number *index* of the *request*."""
    evaluation = policy.chain.run(hosts, request, index, skip_filters=skip_filters)
    add_weights(policy, evaluation, request)
    return evaluation


def add_weights(policy: Policy, evaluation: Evaluation, request: Any) -> None:
    evaluation.totals, evaluation.parts = weigh(
        policy.weighers, evaluation.hosts, request, policy.semantics
    )
