"""The engine: a function of (request, host table, options, random source, clock).

Narrow, filter, weigh, choose, consume; again for the next instance; then the alternates.  It does
no I/O and never yields.  Either every instance gets a host, or nothing stays consumed.
Reference page scheduling, sections 2.1 and 2.5.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scheduler import errors
from scheduler.explain.record import DecisionRecord
from scheduler.explain.watcher import Watcher
from scheduler.filters.chain import FilterChain
from scheduler.hosts import fitting, selector
from scheduler.hosts.books import Books, Pick
from scheduler.hosts.candidates import Candidates, Scope
from scheduler.hosts.consumption import Consumption
from scheduler.hosts.fitting import Fitting
from scheduler.hosts.host_state import HostState
from scheduler.semantics import CURRENT, Semantics
from scheduler.weights.base import BaseHostWeigher
from scheduler.weights.weighing import bounds_of, restore_bounds, weigh

NOT_ENOUGH_HOSTS = "There are not enough hosts available."


@dataclass(frozen=True, slots=True)
class Policy:
    """How the driver was configured to choose."""

    chain: FilterChain
    weighers: Sequence[BaseHostWeigher]
    host_subset_size: int
    shuffle_best_same_weighed_hosts: bool
    service_down_time_seconds: float
    semantics: Semantics = CURRENT
    fitting: Fitting = Fitting()


@dataclass(frozen=True, slots=True)
class Placement:
    """The decision: per instance the chosen host, its limits, and the alternates of the request.

    ``alternates[i]`` are the hosts that instance *i* may be built on instead, best first; their
    limits are in them.
    """

    hosts: list[HostState]
    limits: list[dict[str, Any]]
    alternates: list[list[HostState]]


class Decision:
    """One run of the engine over the table that *books* keeps."""

    def __init__(
        self,
        books: Books,
        policy: Policy,
        rng: random.Random,
        now: float,
        record: DecisionRecord,
        watcher: Watcher | None = None,
        rows: np.ndarray | None = None,
    ) -> None:
        """*rows* are the only ones to choose from, in the table's order; None: all."""
        self.books = books
        self.policy = policy
        self.rng = rng
        self.now = now
        self.record = record
        self.watcher = watcher or Watcher()
        self.scope = Scope(books.table, now, policy.service_down_time_seconds, policy.fitting)
        self.picks: list[Pick] = []
        self._rows = books.table.order if rows is None else rows
        self._skip_filters = False

    def place(self, spec: Any, uuids: Sequence[str], count: int, num_alternates: int) -> Placement:
        """Place *count* instances of *spec*, which is changed as Nova's driver changes it.

        *uuids* may be empty when the caller did not name the instances; the first is then the
        one that *spec* names.  Raises NoValidHost when not all fit; then nothing stays consumed.
        """
        bounds = bounds_of(self.policy.weighers)
        try:
            placement = self._place(spec, uuids, count, num_alternates)
            self.books.confirm(self.picks)
            return placement
        except BaseException:
            restore_bounds(self.policy.weighers, bounds)
            self.record.placed_before_failure = len(self.picks)
            for pick in reversed(self.picks):
                self.books.undo(pick)
            self.picks.clear()
            raise

    def _place(self, spec: Any, uuids: Sequence[str], count: int, num_alternates: int) -> Placement:
        hosts = ranked = self._all_hosts(spec)
        chosen: list[HostState] = []
        limits: list[dict[str, Any]] = []
        for index in range(count):
            is_named = bool(uuids) or index == 0
            if uuids:
                spec.instance_uuid = uuids[index]
            elif not is_named:
                spec.instance_uuid = f"unnamed-{self.record.seed:016x}-{index}"
            passed, ranked = self._sorted_hosts(hosts, spec, index)
            if not len(ranked):
                raise errors.NoValidHost(reason=NOT_ENOUGH_HOSTS)
            hosts = self.policy.semantics.next_candidates(passed, ranked)
            state = self.scope.state(int(ranked.rows[0]))
            chosen.append(state)
            limits.append(self._limits(state, spec))
            self._consume(state, spec, limits[-1], is_named)
        alternates = self._alternates(hosts, ranked, spec, chosen, num_alternates)
        return Placement(chosen, limits, alternates)

    def _all_hosts(self, spec: Any) -> Candidates:
        hosts = Candidates(self.scope, self._rows)
        self.record.hosts_considered = len(hosts)
        narrowed = selector.narrow(hosts, spec, self.policy.semantics)
        self._skip_filters = narrowed.skip_filters
        self.record.removed_before_filters = narrowed.removed
        return narrowed.hosts

    def _sorted_hosts(
        self, hosts: Candidates, spec: Any, index: int
    ) -> tuple[Candidates, Candidates]:
        """Hosts that pass for instance *index*; the same with the pick first, then by weight."""
        if not self._skip_filters:
            hosts, counts = self.policy.chain.run(hosts, spec, index, self.watcher.filtered)
            if index == 0:
                self.record.filters = counts
        self.watcher.passed(index, hosts, lambda state: self._limits(state, spec))
        if not len(hosts):
            return hosts, hosts
        weighed = weigh(self.policy.weighers, hosts, spec, self.policy.semantics)
        claimable = self.books.claimable(weighed.hosts.rows)
        self.watcher.weighed(index, weighed, claimable)
        order = np.arange(len(hosts))
        if self.policy.shuffle_best_same_weighed_hosts:
            order = self._with_best_shuffled(order, weighed.totals)
        order = order[np.argsort(~claimable[order], kind="stable")]
        if not claimable[order[0]]:
            return hosts, weighed.hosts.take(order[:0])
        order = self._with_pick_first(order, int(np.count_nonzero(claimable)))
        return hosts, weighed.hosts.take(order)

    def _with_best_shuffled(self, order: np.ndarray, totals: np.ndarray) -> np.ndarray:
        best = order[totals == totals[0]].tolist()
        self.rng.shuffle(best)
        return np.concatenate([np.array(best, dtype=order.dtype), order[len(best) :]])

    def _with_pick_first(self, order: np.ndarray, claimable: int) -> np.ndarray:
        size = min(max(1, self.policy.host_subset_size), claimable)
        pick = self.rng.randrange(size) if size > 1 else 0
        if pick == 0:
            return order
        return np.concatenate([order[pick : pick + 1], order[:pick], order[pick + 1 :]])

    def _consume(self, state: HostState, spec: Any, limits: dict[str, Any], is_named: bool) -> None:
        uuid, stand_in = spec.instance_uuid, None
        group = spec.instance_group
        if group is not None:
            group.hosts = [*(group.hosts or []), state.host]
        if not is_named:
            uuid, stand_in = None, uuid
            if group is not None:
                group.members = [*(group.members or []), stand_in]
        amount = Consumption.of(spec, limits, self.policy.fitting)
        flavor_id = spec.flavor.id
        pick = self.books.pick(state.row, uuid, amount, self.now, stand_in, flavor_id)
        self.picks.append(pick)
        if pick.booking is not None:
            fitting.hand_over(self.books.table, state.row, pick.booking, spec)

    def _alternates(
        self,
        hosts: Candidates,
        ranked: Candidates,
        spec: Any,
        chosen: list[HostState],
        wanted: int,
    ) -> list[list[HostState]]:
        if wanted < 1 or not chosen:
            return [[] for _ in chosen]
        if len(chosen) > 1:
            _passed, ranked = self._sorted_hosts(hosts, spec, len(chosen) - 1)
        taken = {state.row for state in chosen}
        rows = [
            row
            for row in ranked.rows[self.books.claimable(ranked.rows)].tolist()
            if row not in taken
        ]
        found = [list(itertools.islice(self._in_cell_of(state, rows), wanted)) for state in chosen]
        for other in {other.row: other for others in found for other in others}.values():
            other.limits = self._limits(other, spec)
        return found

    def _limits(self, state: HostState, spec: Any) -> dict[str, Any]:
        return {} if self._skip_filters else self.policy.chain.limits(state, spec)

    def _in_cell_of(self, state: HostState, rows: list[int]) -> Iterator[HostState]:
        others = (self.scope.state(row) for row in rows)
        return (other for other in others if other.cell_uuid == state.cell_uuid)
