"""What drivers of older releases ask their host manager (scheduling page, 5.2, 5.6 and 7.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scheduler.drivers.pipeline import Policy
from scheduler.hosts import selector
from scheduler.hosts.candidates import Candidates, Scope
from scheduler.hosts.host_state import HostState
from scheduler.weights.weighing import weigh


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

    def get_all_host_states(self, context: Any) -> list[HostState]:
        """Every host that has a service, as of now."""
        del context
        own, policy = self.host_manager, self.policy
        own.refresh()
        with own.lock:
            scope = Scope(own.table, own.clock(), policy.service_down_time_seconds, policy.fitting)
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
        with self.host_manager.lock:
            narrowed = selector.narrow(_together(states), spec_obj, self.policy.semantics)
            if narrowed.skip_filters:
                return narrowed.hosts.states()
            left, _counts = self.policy.chain.run(narrowed.hosts, spec_obj, index)
            for state in left.states():
                state.limits = self.policy.chain.limits(state, spec_obj)
            return left.states()

    def get_weighed_hosts(self, hosts: Sequence[HostState], spec_obj: Any) -> list[WeighedHost]:
        """*hosts* best first, with their weights."""
        if not hosts:
            return []
        with self.host_manager.lock:
            candidates = _together(hosts)
            weighed = weigh(self.policy.weighers, candidates, spec_obj, self.policy.semantics)
        pairs = zip(weighed.hosts.states(), weighed.totals.tolist(), strict=True)
        return [WeighedHost(state, weight) for state, weight in pairs]


def _together(states: Sequence[HostState]) -> Candidates:
    rows = np.array([state.row for state in states], dtype=np.int64)
    return Candidates(states[0].scope, rows)
