"""The engine: a function of (request, host table, options, random source, clock).

Narrow, filter, weigh, choose, consume; again for the next instance; then the alternates.  It does
no I/O and never yields.  Either every instance gets a host, or nothing stays consumed.
Reference page scheduling, sections 2.1 and 2.5.
"""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scheduler import errors
from scheduler.drivers import together
from scheduler.drivers.noting import Notes
from scheduler.drivers.ranking import HEAD, Draws, Head, Ranking
from scheduler.explain.record import LATER, WEIGH, DecisionRecord
from scheduler.explain.watcher import Watcher
from scheduler.filters.chain import FilterChain, log_counts
from scheduler.hosts import fitting, selector
from scheduler.hosts.books import Books, Pick
from scheduler.hosts.candidates import Candidates, Scope
from scheduler.hosts.consumption import Consumption
from scheduler.hosts.fitting import Fitting
from scheduler.hosts.host_state import HostState
from scheduler.semantics import CURRENT, Semantics
from scheduler.standing import Left, Run, Standing, StandingResults, left_of_all, own_totals
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
    most_seconds: float = math.inf


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
    """One run of the engine over the table that *books* keeps.

    With *results* it makes use of what stands for requests like this one, unless a *watcher* wants
    to see every step; the decision is the same.
    """

    def __init__(
        self,
        books: Books,
        policy: Policy,
        rng: random.Random | None,
        now: float,
        record: DecisionRecord,
        watcher: Watcher | None = None,
        rows: np.ndarray | None = None,
        results: StandingResults | None = None,
        room: Mapping[int, int] | None = None,
    ) -> None:
        """*rows* are the only ones to choose from, in the table's order; None: all.

        Without *rng* there is one that begins with the seed of the *record*.
        *room* says of some rows how many instances they may get.
        """
        self.books = books
        self.policy = policy
        self._draws = Draws(record.seed, rng)
        self.now = now
        self.record = record
        self.watcher = watcher or Watcher()
        self.scope = Scope(books.table, now, policy.service_down_time_seconds, policy.fitting)
        self.results = results if type(self.watcher) is Watcher else None
        self.picks: list[Pick] = []
        self._notes = Notes(record, books.table, policy.chain.filters)
        self._rows = books.table.order if rows is None else rows
        self._narrowed = self._rows
        self._room = room or {}
        self._skip_filters = False
        self._wants_more = False
        self._last: Ranking | None = None
        self._standing: Standing | None = None
        self._nothing_was_asked = False
        self._later: Run | None = None
        self._amount: Consumption | None = None
        self._ends_at = time.monotonic() + policy.most_seconds

    @property
    def rng(self) -> random.Random:
        """What is drawn from."""
        return self._draws()

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
        chosen: list[HostState] = []
        limits: list[dict[str, Any]] = []
        best: Iterator[int] = iter(())
        self._wants_more = num_alternates > 0
        for index in range(count):
            is_named = bool(uuids) or index == 0
            if index or uuids:
                spec.instance_uuid = uuids[index] if uuids else self._stand_in(index)
            self._require_time(index, "not begun")
            best = self._best(spec, index)
            if index == 0:
                best = self._notes.top(best, num_alternates)
            row = next(best, None)
            if row is None:
                raise self._refusal(spec, index)
            if index == 0 and count > 1:
                began = time.perf_counter()
                later = self._later = self._later_instances(spec)
                amount = together.amount_alone(later, spec, self.policy, self.books.table)
                if later is not None and amount is not None:
                    found = later.rows(row, amount.added, count)
                    chosen, limits = self._place_together(found, spec, uuids, count, amount)
                    later.are_told()
                    break
            state = self.scope.state(row)
            chosen.append(state)
            limits.append(self._limits(state, spec))
            self._consume(state, spec, limits[-1], is_named)
        if count > 1:
            self.record.add_stage(LATER, began)
        if num_alternates < 1:
            return Placement(chosen, limits, [[] for _ in chosen])
        if count > 1:
            best = self._best(spec, count - 1)
        return Placement(chosen, limits, self._alternates(best, spec, chosen, num_alternates))

    def _refusal(self, spec: Any, index: int) -> errors.NoValidHost:
        """What to raise when no host is left for instance number *index*."""
        hosts = Candidates(self.scope, self._narrowed)
        self._notes.refused(hosts, spec, index, self.policy.chain)
        return errors.NoValidHost(reason=NOT_ENOUGH_HOSTS)

    def _require_time(self, index: int, place: str) -> None:
        """Raise DecisionGivenUp when the decision has taken too long; nothing stays consumed."""
        if time.monotonic() > self._ends_at:
            seconds = self.policy.most_seconds
            raise errors.DecisionGivenUp(seconds=seconds, number=index + 1, place=place)

    def _filtered(self, index: int, name: str, hosts: Candidates) -> None:
        self.watcher.filtered(index, name, hosts)
        self._require_time(index, f"after {name}")

    def _stand_in(self, index: int) -> str:
        """A name for an instance that the caller has not named."""
        return f"unnamed-{self.record.seed:016x}-{index}"

    def _best(self, spec: Any, index: int) -> Iterator[int]:
        """The rows that may be picked for instance number *index*, best first."""
        if self._later is not None:
            return self._later.best()
        if self._last is None:
            hosts = self._all_hosts(spec)
        else:
            keeps_ranking = self.policy.semantics.keeps_ranking
            rows = self._last.ranked() if keeps_ranking else self._last.passed()
            hosts = Candidates(self.scope, rows)
        self._last = self._ranking(hosts, spec, index)
        return self._last.best()

    def _later_instances(self, spec: Any) -> Run | None:
        """What makes the later instances cheap, where the choice is simple.

        Cells are fitted to the host of the instance before, so the next one asks for others.
        """
        standing, policy = self._standing, self.policy
        is_simple = policy.host_subset_size <= 1 and not policy.shuffle_best_same_weighed_hosts
        if standing is None or not self._nothing_was_asked or not is_simple or spec.numa_topology:
            return None
        if not self.books.claimable(np.flatnonzero(standing.verdicts.passing)).all():
            return None
        return Run(standing, self.scope, spec, policy.semantics)

    def _place_together(
        self,
        found: Iterator[list[int]],
        spec: Any,
        uuids: Sequence[str],
        count: int,
        each: Consumption,
    ) -> tuple[list[HostState], list[dict[str, Any]]]:
        """Hosts and limits of all instances; those *found* are told when all are."""
        rows: list[int] = []
        try:
            for several in found:
                rows += several
                if len(rows) < count:
                    self._require_time(len(rows), "not begun")
        finally:
            names = together.names(spec, uuids, len(rows), self._stand_in)
            self.picks += self.books.pick_many(rows, names, each, self.now, spec.flavor.id)
        last = min(len(rows), count - 1)
        spec.instance_uuid = uuids[last] if uuids else self._stand_in(last)
        if len(rows) < count:
            raise self._refusal(spec, len(rows))
        states = [self.scope.state(row) for row in rows]
        return states, self.policy.chain.limits_of_many(self.books.table, states, spec)

    def _all_hosts(self, spec: Any) -> Candidates:
        self._notes.begin(self._rows)
        hosts = Candidates(self.scope, self._rows)
        narrowed = selector.narrow(hosts, spec, self.policy.semantics)
        self._skip_filters = self.record.filters_skipped = narrowed.skip_filters
        self._narrowed = narrowed.hosts.rows
        self._notes.narrowed(narrowed.hosts, narrowed.removed)
        return narrowed.hosts

    def _ranking(self, hosts: Candidates, spec: Any, index: int) -> Ranking:
        """The hosts that pass for instance number *index*, by weight."""
        began, notes = time.perf_counter(), self._notes
        standing = None
        if index == 0 and self.results is not None and not self._skip_filters:
            standing = self.results.of(spec, self.scope)
        if standing is None:
            return self._ranking_from_scratch(hosts, spec, index, began)
        self._standing = standing
        notes.stood(standing)
        are_all = hosts.rows is hosts.table.order and hosts.table.in_order
        left = None
        if standing.is_complete and are_all:
            self._nothing_was_asked = True
            counts = standing.filter_counts()
        elif are_all and (left := left_of_all(standing, self.scope, spec, notes.note)) is not None:
            notes.left(left)
            counts = left.counts
        else:
            hosts, counts = standing.run(hosts, spec, notes.note)
        self.record.filters = counts
        log_counts(counts, spec)
        began = notes.spent(began, standing.weighing_seconds)
        if left is None:
            ranking = self._ranking_of_standing(standing, hosts, spec)
        else:
            ranking = self._ranking_of_left(standing, left, spec)
        self.record.add_stage(WEIGH, began)
        return ranking

    def _ranking_of_left(self, standing: Standing, left: Left, spec: Any) -> Ranking:
        if left.few is not None:
            return self._ranking_of_standing(standing, left.few, spec)
        own = own_totals(standing, left, self.scope, spec)
        if own is None:
            passing = standing.verdicts.passing.copy()
            passing[list(left.gone)] = False
            hosts = Candidates(self.scope, np.flatnonzero(passing))
            return self._ranking_of_standing(standing, hosts, spec)
        if not own.asked:
            return self._notes.scored(standing, self._ranked(own.all(), None))
        head = own.head(HEAD if self._wants_more else 1)
        return self._notes.added_up(own, self._ranked(own.all, None, head))

    def _ranking_of_standing(self, standing: Standing, hosts: Candidates, spec: Any) -> Ranking:
        notes = self._notes
        if self._nothing_was_asked:
            return notes.scored(standing, self._ranked(standing.totals(), None))
        in_order = hosts.table.in_order and bool((hosts.rows[1:] > hosts.rows[:-1]).all())
        within = standing.totals_within(hosts.rows) if in_order else None
        if within is not None:
            return notes.scored(standing, self._ranked(within, None))
        totals, valued = standing.scores.totals_of(hosts, spec)
        return notes.weighed(valued, hosts.rows, self._ranked(totals, hosts.rows))

    def _ranking_from_scratch(
        self, hosts: Candidates, spec: Any, index: int, began: float
    ) -> Ranking:
        notes = self._notes
        if index:  # of which the record says nothing
            notes = Notes(DecisionRecord(None, (), 1, 0), self.books.table, ())
        if not self._skip_filters:
            watch = self._filtered
            hosts, counts = self.policy.chain.run(hosts, spec, index, watch, notes.note)
            notes.record.filters = counts
        began = notes.spent(began)
        self.watcher.passed(index, hosts, lambda state: self._limits(state, spec))
        if not len(hosts):
            return self._ranked(np.zeros(0), hosts.rows)
        weighed = weigh(self.policy.weighers, hosts, spec, self.policy.semantics)
        if type(self.watcher) is not Watcher:
            self.watcher.weighed(index, weighed, self.books.claimable(weighed.hosts.rows))
        valued = [each.valued for each in weighed.components]
        ranking = self._ranked(weighed.totals_as_given, hosts.rows)
        notes.record.add_stage(WEIGH, began)
        return notes.weighed(valued, hosts.rows, ranking)

    def _ranked(
        self,
        totals: np.ndarray | Callable[[], np.ndarray],
        rows: np.ndarray | None,
        head: Head | None = None,
    ) -> Ranking:
        return Ranking(
            totals,
            rows,
            self._claimable if self._room else self.books.claimable,
            self._draws,
            self.policy.host_subset_size,
            shuffle_best=self.policy.shuffle_best_same_weighed_hosts,
            head=head,
        )

    def _claimable(self, rows: np.ndarray) -> np.ndarray:
        """What the books allow, without rows that have no room for another instance."""
        got = Counter(self.books.table.rows.get(pick.key) for pick in self.picks)
        full = [row for row, room in self._room.items() if got[row] >= room]
        allowed: np.ndarray = self.books.claimable(rows) & ~np.isin(rows, full)
        return allowed

    def _consume(self, state: HostState, spec: Any, limits: dict[str, Any], is_named: bool) -> None:
        uuid, stand_in = spec.instance_uuid, None
        group = spec.instance_group
        if group is not None:
            group.hosts = [*(group.hosts or []), state.host]
        if not is_named:
            uuid, stand_in = None, uuid
            if group is not None:
                group.members = [*(group.members or []), stand_in]
        amount = self._amount
        if amount is None or amount.wish is not None:  # which goes by the limits of the host
            amount = self._amount = Consumption.of(spec, limits, self.policy.fitting)
        flavor_id = spec.flavor.id
        pick = self.books.pick(state.row, uuid, amount, self.now, stand_in, flavor_id)
        self.picks.append(pick)
        follower = self._later or self._standing
        if follower is not None:
            is_plain = amount.wish is None and not self.scope.table.value(state.row, "bare_metal")
            follower.picked(state.row, amount.added if is_plain else None)
        if pick.booking is not None:
            fitting.hand_over(self.books.table, state.row, pick.booking, spec)

    def _alternates(
        self, best: Iterator[int], spec: Any, chosen: list[HostState], wanted: int
    ) -> list[list[HostState]]:
        """Hosts of the cell of each one chosen that no instance of the request was given."""
        taken = {state.row for state in chosen}
        others = (self.scope.state(row) for row in best if row not in taken)
        of_cell: dict[str | None, list[HostState]] = {state.cell_uuid: [] for state in chosen}
        missing = wanted * len(of_cell)
        while missing and (other := next(others, None)) is not None:
            found = of_cell.get(other.cell_uuid)
            if found is not None and len(found) < wanted:
                other.limits = self._limits(other, spec)
                found.append(other)
                missing -= 1
        return [list(of_cell[state.cell_uuid]) for state in chosen]

    def _limits(self, state: HostState, spec: Any) -> dict[str, Any]:
        return {} if self._skip_filters else self.policy.chain.limits(state, spec)
