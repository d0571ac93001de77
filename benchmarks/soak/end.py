"""When a run is over: after its minutes or decisions, or soon after it was told to end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Final

from benchmarks.soak.plan import Plan

#: Whoever waits is to notice soon that there is no more time.
NAP_SECONDS: Final = 0.2


class End:
    """The end of a run by *plan* that begins now; *monotonic* and *sleep* are the clock's."""

    def __init__(
        self,
        plan: Plan,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._plan, self._monotonic, self._sleep = plan, monotonic, sleep
        self._began = monotonic()
        self._ends_at = self._began + plan.minutes * 60 if plan.minutes else float("inf")
        self._at_latest = float("inf")

    def after(self, wanted: int) -> Callable[[int], bool]:
        """Says of a number of decisions whether it is over with them; *wanted* are enough."""

        def is_over(decisions: int) -> bool:
            self._listen()
            now = self._monotonic()
            if now >= self._ends_at and decisions >= self._plan.least_decisions:
                return True
            return now >= self._at_latest or (bool(wanted) and decisions >= wanted)

        return is_over

    def pause(self, decisions: int) -> None:
        """Wait while so many are more than ``most_per_second``, unless it is to end."""
        if not self._plan.most_per_second:
            return
        due_at = self._began + decisions / self._plan.most_per_second
        while (now := self._monotonic()) < min(due_at, self._ends_at):
            self._sleep(min(NAP_SECONDS, due_at - now))
            self._listen()

    def _listen(self) -> None:
        """Whoever wrote the file wants it to end, with the least decisions if time allows it."""
        if self._at_latest == float("inf") and os.path.exists(self._plan.end_file):
            now = self._monotonic()
            self._ends_at = min(self._ends_at, now)
            self._at_latest = now + self._plan.grace_seconds
