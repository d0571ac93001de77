"""How full the fleet is to be: filled from nothing to the last MiB, kept there, emptied, again."""

from __future__ import annotations

import random
from collections import Counter, deque
from typing import Final

from benchmarks.race.callers import Request
from benchmarks.race.computes import Computes
from benchmarks.race.plan import SIZES_MB, Plan

FILLING, EDGE, EMPTYING = "filling", "full", "emptying"
#: After so many refusals in a row only the smallest servers are asked for.
REFUSALS: Final = 10
#: Share of the fleet that may be left when filling begins again; hosts per server deleted at once.
EMPTY: Final = 0.05
AT_ONCE: Final = 8


class Cycle:
    """Says what to ask for next, and when to delete."""

    def __init__(self, plan: Plan, computes: Computes, rng: random.Random) -> None:
        self._plan = plan
        self._computes = computes
        self._rng = rng
        self._latest: deque[bool] = deque(maxlen=REFUSALS)
        self._at_edge = 0
        self.phase = FILLING
        self.counts: Counter[str] = Counter()

    def next_size(self) -> tuple[int, bool]:
        """Memory of the next server in MiB, and whether several may be asked for at once."""
        if self.phase == FILLING and self._latest and all(self._latest):
            return SIZES_MB[0], False
        return self._rng.choice(SIZES_MB), True

    def after(self, request: Request) -> None:
        """Go on to the next phase where it is time; delete what has to go."""
        self._latest.append(request.failure == "NoValidHost")
        if self.phase == FILLING:
            self._fill(request)
        elif self.phase == EDGE:
            self._keep_full()
        else:
            self._empty()

    def _fill(self, request: Request) -> None:
        if self._computes.used_mb >= self._plan.fleet_mb:
            self.counts["times full to the last MiB"] += 1
            self.phase, self._at_edge = EDGE, 0
        elif request.memory_mb == SIZES_MB[0] and request.failure == "NoValidHost":
            self._at_edge += 1
            if self._at_edge > self._plan.callers:  # what is left is promised to nobody that comes
                self.phase, self._at_edge = EDGE, 0

    def _keep_full(self) -> None:
        self._at_edge += 1
        if self._rng.random() < 1 / 2:
            self._computes.delete(1)
        if self._at_edge >= self._plan.edge_requests:
            self.phase = EMPTYING

    def _empty(self) -> None:
        self._computes.delete(max(1, self._plan.hosts // AT_ONCE))
        if self._computes.used_mb <= EMPTY * self._plan.fleet_mb:
            self.counts["times empty again"] += 1
            self.phase, self._at_edge = FILLING, 0
