"""Decisions in tests: the arguments of ``decide`` that most of them share."""

import random

from scheduler.engine import DecisionRecord, decide
from scheduler.hosts.reservations import Reservations
from tests.builders import NOW


class Decider:
    """Decides on *table* under *policy*, each time with what was drawn from the same *seed*."""

    def __init__(self, table, policy, seed=1, reservations=None):
        self.reservations = reservations or Reservations(table)
        self.policy = policy
        self.record = DecisionRecord("req-1", (), 1, seed)
        self._rng = random.Random(seed)

    def place(self, request, uuids=(), count=1, alternates=0, **more):
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
