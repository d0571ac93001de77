"""Reasons why another scheduler chose other hosts, from the reports that it can have read.

That was between the last read here before the request and the outcome.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from scheduler.claims.backend import Offered, Request
from scheduler.drivers.filter_scheduler import Settings
from scheduler.engine import evaluate
from scheduler.hosts.candidates import Candidates, Scope, narrow, rows_of_nodes
from scheduler.hosts.host_manager import HostManager
from scheduler.hosts.host_state import Consumption
from scheduler.hosts.table import HostTable, Key


class Result(enum.StrEnum):
    """Relation of a decision to the outcome, and the label of its metric."""

    AGREED = "agreed"
    STATE_MOVED = "state_moved"
    TIE = "tie"
    RANDOM_SUBSET = "random_subset"
    OUTCOME_UNKNOWN = "outcome_unknown"
    OTHER = "other"


@dataclass(frozen=True)
class State:
    """Reports of the hosts, as they were read at one time."""

    table: HostTable
    now: float
    #: Uuids of the nodes that Placement offered; None if it was not asked.
    nodes: frozenset[str] | None

    @classmethod
    def of(cls, host_manager: HostManager, offered: Offered | None) -> Self:
        """That of *host_manager* now: a copy."""
        with host_manager.lock:
            table, now = host_manager.table.copy(), host_manager.clock()
        return cls(table, now, None if offered is None else frozenset(offered.nodes))


def reason_of(
    settings: Settings, request: Request, same: int, outcome: Sequence[Key], states: Sequence[State]
) -> Result:
    """The reason why instance number *same*, the first that differs, went where *outcome* says.

    *states* are that before the decision, of the decision and those since.  No reason will do where
    another host was better all the time.
    """
    most, size = settings.policy.host_subset_size, states[0].table.capacity
    totals = np.stack([_totals(settings, request, outcome[:same], each)[:size] for each in states])
    if not outcome:  # refused
        return Result.STATE_MOVED if np.isneginf(totals).all(axis=1).any() else Result.OTHER
    row = states[0].table.rows.get(outcome[same])
    if row is None:
        return Result.STATE_MOVED  # the host is new
    its = totals[:, row]
    if its[1] > -np.inf and np.count_nonzero(totals[1] > its[1]) < most:
        return Result.TIE if most == 1 else Result.RANDOM_SUBSET
    better = np.count_nonzero((totals > its[:, None]).all(axis=0))
    return Result.STATE_MOVED if its.max() > -np.inf and better < most else Result.OTHER


def _totals(
    settings: Settings, request: Request, before: Sequence[Key], state: State
) -> np.ndarray:
    """By row the weight for one instance, if those *before* it are there; -inf for the refused."""
    policy, table, spec = settings.policy, state.table, settings.own_spec(request.spec)
    rows = [table.rows[key] for key in before if key in table.rows]
    amount = Consumption.from_request(spec, {}, policy.fitting).added if rows else {}
    spec.instance_uuid = request.names[len(before)]
    if (group := spec.instance_group) is not None:
        group.hosts = [*(group.hosts or []), *(host for host, _node in before)]
    scope = Scope(table, state.now, policy.service_down_time_seconds, policy.fitting)
    offered = table.order if state.nodes is None else rows_of_nodes(table, state.nodes)
    left = narrow(Candidates(scope, offered), spec, policy.semantics)
    table.add(rows, amount)
    found = evaluate(policy, left.hosts, spec, len(before), skip_filters=left.skip_filters)
    totals = np.full(table.capacity, -np.inf)
    totals[found.hosts.rows] = found.totals
    table.add(rows, amount, -1)
    return totals
