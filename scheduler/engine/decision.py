"""The decision: a function of policy, reserved host table, request, random source and clock.

Narrow, evaluate, choose, consume; again for the next instance; then the alternates.  It does no
I/O and never yields.  Either every instance gets a host, or nothing stays consumed.
Reference page scheduling, sections 2.1 and 2.5.
"""

import contextlib
import itertools
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scheduler import errors
from scheduler.engine import record as records
from scheduler.engine.batch import Batch, NeedsTable
from scheduler.engine.choice import Choice, FirstOf
from scheduler.engine.evaluation import Evaluation, Policy, add_weights, bounds_of, restore_bounds
from scheduler.engine.record import DecisionRecord
from scheduler.hosts.candidates import Candidates, narrow
from scheduler.hosts.host_state import Consumption, HostState, hand_over
from scheduler.hosts.reservations import Reservation, Reservations

NOT_ENOUGH_HOSTS = "There are not enough hosts available."

OnRefusal = Callable[[Candidates, Evaluation, int], None]
"""Notified, before anything is undone, that none of the hosts would do for that instance."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The decision: per instance the chosen host, its limits, and the alternates of the request.

    ``alternates[i]`` are the hosts that instance *i* may be built on instead, best first; their
    limits are in them.
    """

    hosts: list[HostState]
    limits: list[dict[str, Any]]
    alternates: list[list[HostState]]
    reservations: tuple[Reservation, ...] = ()


def decide(
    policy: Policy,
    reservations: Reservations,
    request: Any,
    uuids: Sequence[str] = (),
    count: int = 1,
    alternates: int = 0,
    *,
    now: float | None = None,
    rng: random.Random | None = None,
    record: DecisionRecord | None = None,
    rows: np.ndarray | None = None,
    room: Mapping[int, int] | None = None,
    on_refusal: OnRefusal | None = None,
) -> Placement:
    """Place *count* instances of *request*, which is changed as Nova's driver changes it.

    *uuids* may be empty when the caller did not name the instances; the first is then the one
    that the request names.  *now* is in seconds since the epoch.  Without *rng* there is one that
    begins with the seed of the *record*.  *rows* are the only ones to choose from, in the table's
    order; *room* says of some rows how many instances they may get.
    What an instance was given by an earlier decision does not stand against it.
    Raises NoValidHost when not all fit; then nothing stays consumed.
    """
    moment = time.time() if now is None else now
    notes = DecisionRecord(None, tuple(uuids), count, 0) if record is None else record
    own = reservations.of(uuids or (request.instance_uuid,))
    bounds = bounds_of(policy.weighers)
    with reservations.without(own) if own else contextlib.nullcontext():
        decision = _Decision(policy, reservations, moment, notes, rng, room or {}, on_refusal)
        try:
            decision.narrow(rows, request)
            placement = decision.place(request, uuids, count, alternates)
        except BaseException:
            restore_bounds(policy.weighers, bounds)
            reservations.release_all(decision.made)
            raise
    reservations.confirm(placement.reservations)
    return placement


@dataclass
class _Decision:
    """One run of the engine over the table that *reservations* keeps."""

    policy: Policy
    reservations: Reservations
    now: float
    record: DecisionRecord
    rng: random.Random | None
    room: Mapping[int, int]
    on_refusal: OnRefusal | None
    made: list[Reservation] = field(default_factory=list)
    choice: Choice | None = None
    before: FirstOf | None = None
    amount: Consumption | None = None

    def __post_init__(self) -> None:
        stages = (records.FILTER, records.WEIGH, records.LATER)
        spent_ms = sum(self.record.stages_ms.get(each, 0.0) for each in stages)
        self.scope = self.policy.scope(self.reservations.table, self.now, spent_ms / 1000)

    def place(self, request: Any, uuids: Sequence[str], count: int, alternates: int) -> Placement:
        hosts: list[HostState] = []
        limits: list[dict[str, Any]] = []
        batch: Batch | None = None
        for index in range(count):
            if index or uuids:
                request.instance_uuid = uuids[index] if uuids else self._stand_in(index)
            self.scope.require_time("not begun", index)
            row = self._next(request, index)
            if row is None:
                raise self._refusal(index)
            if index == 0 and count > 1:
                began = time.perf_counter()
                batch = self._batch(request, row, count)
            if batch is not None:
                hosts, limits = self._take_batch(batch, request, uuids, count)
                break
            hosts.append(self.scope.state(row))
            limits.append(self._limits(hosts[-1], request))
            self._consume(hosts[-1], request, limits[-1], is_named=bool(uuids) or index == 0)
        if count > 1:
            self.record.add_stage(records.LATER, began)
        others: list[list[HostState]] = [[] for _ in hosts]
        if alternates > 0 and hosts:
            others = self._alternates(request, hosts, count, alternates)
        return Placement(hosts, limits, others, tuple(self.made))

    # --- one instance --------------------------------------------------------------------

    def narrow(self, rows: np.ndarray | None, request: Any) -> None:
        """Leave the hosts that the lists of the request do."""
        record, table = self.record, self.reservations.table
        rows = table.order if rows is None else rows
        record.fleet = len(table)
        record.hosts_considered = len(rows)
        without_service, not_offered = len(table) - len(table.order), len(table.order) - len(rows)
        self.narrowed = narrow(Candidates(self.scope, rows), request, self.policy.semantics)
        self.evaluation = Evaluation(self.narrowed.hosts)
        missing = {records.NO_SERVICE: without_service, records.NOT_OFFERED: not_offered}
        lost = {**missing, **self.narrowed.removed}
        record.never_evaluated = {cause: number for cause, number in lost.items() if number}
        record.filters_skipped = self.narrowed.skip_filters
        record.filters, record.before_filters = [], []
        record.top = record.verdicts = record.refusal = None

    def _next(self, request: Any, index: int) -> int | None:
        """The row for instance number *index*; None if there is none."""
        policy, began = self.policy, time.perf_counter()
        hosts = self.evaluation.hosts
        self.evaluation = evaluation = policy.chain.run(
            Candidates(self.scope, hosts.rows),  # columns anew: they were consumed from
            request,
            index,
            skip_filters=self.narrowed.skip_filters,
            after=lambda name: self.scope.require_time(f"after {name}", index),
        )
        if index == 0:
            self.record.filters = evaluation.counts
            began = self.record.add_stage(records.FILTER, began)
            if self.record.wants_detail:
                self.record.verdicts = records.Verdicts.from_evaluation(
                    evaluation, policy.chain.filters
                )
        add_weights(policy, evaluation, request)
        before = self.before if policy.semantics.keeps_ranking else None
        claimable = self._claimable if self.room else self.reservations.claimable
        self.choice = choice = Choice(evaluation, claimable, before)
        self.before = choice.first_of
        row = choice.choose(
            self._draws,
            policy.host_subset_size,
            shuffle_best=policy.shuffle_best_same_weighed_hosts,
        )
        self.record.by_weight_alone &= choice.by_weight_alone
        if index == 0:
            self.record.add_stage(records.WEIGH, began)
            if self.record.wants_detail:
                self._note_details(evaluation, choice)
        return row

    def _draws(self) -> random.Random:
        """The source of random numbers, made when it is first wanted: few decisions draw."""
        if self.rng is None:
            self.rng = random.Random(self.record.seed)  # no secret
        return self.rng

    def _note_details(self, evaluation: Evaluation, choice: Choice) -> None:
        """Keep what was said of every host, and what the best of them weigh."""
        record, keys = self.record, self.reservations.table.keys
        if record.verdicts is not None:
            record.verdicts.totals = choice.totals
            record.verdicts.bounds = [part.bounds for part in evaluation.parts]
        rows = choice.first(records.TOP_HOSTS)
        if rows:
            places = evaluation.places(rows)
            record.top = records.Top(
                [keys[row] for row in rows],
                choice.totals[rows].tolist(),
                [part.at(places) for part in evaluation.parts],
            )

    def _refusal(self, index: int) -> errors.NoValidHost:
        """The error when no host is left for instance number *index*."""
        if self.on_refusal is not None:
            self.on_refusal(self.narrowed.hosts, self.evaluation, index)
        return errors.NoValidHost(reason=NOT_ENOUGH_HOSTS)

    def _stand_in(self, index: int) -> str:
        """A name for an instance that the caller has not named."""
        return f"unnamed-{self.record.seed:016x}-{index}"

    def _claimable(self, rows: np.ndarray) -> np.ndarray:
        """The hosts that reservations allow, without rows with no room for another instance."""
        table = self.reservations.table
        got = Counter(table.rows.get(reservation.key) for reservation in self.made)
        full = [row for row, room in self.room.items() if got[row] >= room]
        return self.reservations.claimable(rows) & ~np.isin(rows, full)

    def _limits(self, state: HostState, request: Any) -> dict[str, Any]:
        return {} if self.narrowed.skip_filters else self.policy.chain.limits(state, request)

    def _consume(
        self, state: HostState, request: Any, limits: dict[str, Any], *, is_named: bool
    ) -> None:
        uuid, stand_in = request.instance_uuid, None
        group = request.instance_group
        if group is not None:
            group.hosts = [*(group.hosts or []), state.host]
        if not is_named:
            uuid, stand_in = None, uuid
            if group is not None:
                group.members = [*(group.members or []), stand_in]
        amount = self.amount
        if amount is None or amount.wish is not None:  # which goes by the limits of the host
            amount = self.amount = Consumption.from_request(request, limits, self.policy.fitting)
        self.made += self.reservations.reserve(
            [state.row], [(uuid, stand_in)], amount, self.now, request.flavor.id
        )
        hardware = self.made[-1].hardware
        if hardware is not None:
            hand_over(self.reservations.table, state.row, hardware, request)

    # --- several instances ---------------------------------------------------------------

    def _batch(self, request: Any, row: int, count: int) -> Batch | None:
        """The rows of all instances at once; None where a reservation changes more than columns.

        Groups learn of each instance, cells and devices are documents, bare metal is taken as a
        whole, and what is drawn or has little room is chosen one by one.
        """
        policy, evaluation = self.policy, self.evaluation
        is_drawn = policy.host_subset_size > 1 or policy.shuffle_best_same_weighed_hosts
        has_group = request.instance_group is not None
        if is_drawn or has_group or self.room or self.narrowed.skip_filters:
            return None
        amount = Consumption.from_request(request, {}, policy.fitting)
        rows = evaluation.hosts.rows
        if amount.wish is not None or evaluation.hosts.bare_metal.any() or len(rows) < 2:
            return None
        if not policy.chain.asks_only_columns or not self.reservations.claimable(rows).all():
            return None
        try:
            batch = Batch(policy, evaluation, request, amount, row)
            batch.choose(count, lambda index: self.scope.require_time("not begun", index))
        except NeedsTable:  # a plug-in looks at instances or at single hosts
            return None
        return batch

    def _take_batch(
        self, batch: Batch, request: Any, uuids: Sequence[str], count: int
    ) -> tuple[list[HostState], list[dict[str, Any]]]:
        """Consume the rows of *batch*; their hosts and limits."""
        rows = batch.rows
        self.before, self.evaluation.hosts = batch.first_of, batch.survivors
        names: list[tuple[str | None, str | None]] = [(request.instance_uuid, None)]
        if uuids:
            names = [(uuid, None) for uuid in uuids[: len(rows)]]
        else:
            names += [(None, self._stand_in(number)) for number in range(1, len(rows))]
        self.record.by_weight_alone &= batch.by_weight_alone
        self.made += self.reservations.reserve(
            rows, names, batch.amount, self.now, request.flavor.id
        )
        last = min(len(rows), count - 1)
        request.instance_uuid = uuids[last] if uuids else self._stand_in(last)
        if len(rows) < count:
            raise self._refusal(len(rows))
        states = [self.scope.state(row) for row in rows]
        known = {row: self._limits(self.scope.state(row), request) for row in dict.fromkeys(rows)}
        return states, [known[row] for row in rows]

    def _alternates(
        self, request: Any, chosen: list[HostState], count: int, wanted: int
    ) -> list[list[HostState]]:
        """Hosts of the cell of each one chosen that no instance of the request was given."""
        if count > 1:  # all have their hosts now
            self._next(request, count - 1)
        if self.choice is None:
            return [[] for _ in chosen]
        rows, taken = self.choice.rows, {state.row for state in chosen}
        hosts = Candidates(self.scope, rows)
        of_cell: dict[str | None, list[HostState]] = {}
        for cell in dict.fromkeys(state.cell_uuid for state in chosen):
            within = hosts.having("cell_uuid", (cell,))
            best = self.choice.best(rows if within.all() else rows[within])
            free = (row for row in best if row not in taken)
            of_cell[cell] = [self.scope.state(row) for row in itertools.islice(free, wanted)]
            for state in of_cell[cell]:
                state.limits = self._limits(state, request)
        return [list(of_cell[state.cell_uuid]) for state in chosen]
