"""Decisions in tests: the arguments of ``decide`` that most of them share."""

import random
from typing import Any

from scheduler.engine import DecisionRecord, Placement, Policy, decide
from scheduler.hosts.reservations import Reservations
from scheduler.hosts.table import HostTable
from tests.builders import NOW


class Decider:
    """Decides on *table* under *policy*, each time with what was drawn from the same *seed*."""

    def __init__(
        self,
        table: HostTable,
        policy: Policy,
        seed: int = 1,
        reservations: Reservations | None = None,
    ) -> None:
        self.reservations = reservations or Reservations(table)
        self.policy = policy
        self.record = DecisionRecord("req-1", (), 1, seed)
        self._rng = random.Random(seed)

    def place(
        self, request: Any, uuids: Any = (), count: int = 1, alternates: int = 0, **more: Any
    ) -> Placement:
        """Decide now."""
        return decide(
            self.policy,
            self.reservations,
            request,
            uuids,
            count,
            alternates,
            now=NOW,
            rng=self._rng,
            record=self.record,
            **more,
        )
