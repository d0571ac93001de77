"""What drivers of older releases ask their host manager (scheduling page, 5.2, 5.6 and 7.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scheduler.drivers.settings import configured_policy
from scheduler.engine.evaluation import Policy, evaluate, filtered
from scheduler.hosts.candidates import Candidates, Scope, narrow
from scheduler.hosts.host_state import HostState


@dataclass(frozen=True, slots=True)
class WeighedHost:
    """A host and its weight, under the names of Nova's class."""

    obj: HostState
    weight: float

    def to_dict(self) -> dict[str, Any]:
        """Weight and host name."""
        return {"weight": self.weight, "host": self.obj.host}


class OlderHostManager:
    """All that *host_manager* is, and the steps of a decision that Nova's offers.

    HostStates of one ``get_all_host_states`` belong together; those that are picked are to be
    told by their ``consume_from_request``, and keep that until their host reports again.
    """

    def __init__(self, host_manager: Any, policy: Policy) -> None:
        self.host_manager = host_manager
        self.policy = policy

    def __getattr__(self, name: str) -> Any:
        return getattr(self.host_manager, name)

    def reconfigured(self, conf: Any) -> Callable[[], None]:
        """What puts the policy of *conf* in force, for HostStates that are given later."""
        policy = configured_policy(conf, self.host_manager)

        def take() -> None:
            self.policy = policy

        return take

    def get_all_host_states(self, context: Any) -> list[HostState]:
        """Every host that has a service, as of now."""
        own, policy = self.host_manager, self.policy
        own.refresh(getattr(context, "arrived_at", None))
        with own.lock:
            scope = _PolicyScope(
                own.table, own.clock(), policy.service_down_time_seconds, policy.fitting
            )
            scope.policy = policy
            return Candidates(scope, own.table.order).states()

    def get_filtered_hosts(
        self, hosts: Iterable[HostState], spec_obj: Any, index: int = 0
    ) -> list[HostState]:
        """Those of *hosts* that the request does not exclude and all filters let pass, in order.

        What the filters demand of their compute services is in their ``limits``.
        """
        states = list(hosts)
        if not states:
            return []
        policy = self._policy_of(states)
        with self.host_manager.lock:
            narrowed = narrow(_together(states), spec_obj, policy.semantics)
            if narrowed.skip_filters:
                return narrowed.hosts.states()
            left = filtered(policy, narrowed.hosts, spec_obj, index).hosts.states()
            for state in left:
                state.limits = policy.chain.limits(state, spec_obj)
            return left

    def get_weighed_hosts(self, hosts: Sequence[HostState], spec_obj: Any) -> list[WeighedHost]:
        """*hosts* best first, with their weights."""
        if not hosts:
            return []
        policy = self._policy_of(hosts)
        with self.host_manager.lock:
            evaluation = evaluate(policy, _together(hosts), spec_obj, skip_filters=True)
        order = np.argsort(-evaluation.totals, kind="stable")
        states = evaluation.hosts.take(order).states()
        return [
            WeighedHost(state, weight)
            for state, weight in zip(states, evaluation.totals[order].tolist(), strict=True)
        ]

    def _policy_of(self, states: Sequence[HostState]) -> Policy:
        """The one that was in force when the HostStates were given."""
        policy: Policy = getattr(states[0].scope, "policy", self.policy)
        return policy


class _PolicyScope(Scope):
    """A scope that remembers for which policy it was made."""

    policy: Policy


def _together(states: Sequence[HostState]) -> Candidates:
    rows = np.array([state.row for state in states], dtype=np.int64)
    return Candidates(states[0].scope, rows)
