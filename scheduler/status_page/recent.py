"""Outcomes of the decisions of the last minutes: counts in a ring of steps of time."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

from scheduler.engine.record import SELECTED, DecisionRecord

#: The rate is shown in steps of so many seconds, and so many of them.
RATE_STEP_SECONDS: Final = 5
RATE_STEPS: Final = 60
#: The same for the counts of reasons.
REASON_STEP_SECONDS: Final = 60
REASON_STEPS: Final = 60
#: The filter of hosts that no filter was asked about.
BEFORE_FILTERS: Final = None

Reason = tuple[str | None, str]
"""Filter and reason code."""
#: Counts of a reason: refused requests that it took hosts from, their hosts, all hosts.
_KINDS = _REFUSED, _HOSTS_OF_REFUSED, _HOSTS = "refused_requests", "hosts_of_refused", "hosts"


class _Ring:
    """The latest *steps* steps of *seconds* each, by their number since the epoch."""

    def __init__(self, seconds: int, steps: int) -> None:
        self.seconds = seconds
        self.steps = steps
        self._kept: dict[int, Counter[Any]] = {}

    def at(self, now: float) -> Counter[Any]:
        number = int(now // self.seconds)
        if number not in self._kept:
            self._kept = {n: step for n, step in self._kept.items() if n > number - self.steps}
            self._kept[number] = Counter()
        return self._kept[number]

    def latest(self, now: float) -> list[Counter[Any]]:
        """Copies, the oldest first; the last one is still going on."""
        last = int(now // self.seconds)
        numbers = range(last - self.steps + 1, last + 1)
        return [Counter(self._kept.get(number)) for number in numbers]


class RecentDecisions:
    """Counts every decision of the last hour by outcome, and what removed hosts.

    *clock* gives seconds since the epoch.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._rate = _Ring(RATE_STEP_SECONDS, RATE_STEPS)
        #: Counts of outcomes, and of reasons together with one of _KINDS.
        self._hour = _Ring(REASON_STEP_SECONDS, REASON_STEPS)

    def note(self, record: DecisionRecord) -> None:
        """Count a finished decision."""
        now = self._clock()
        is_refused = record.outcome != SELECTED
        with self._lock:
            counts = self._hour.at(now)
            for each in (self._rate.at(now), counts):
                each[record.outcome] += 1
            for reason, hosts in _removed_by(record):
                counts[reason, _HOSTS] += hosts
                if is_refused:
                    counts[reason, _REFUSED] += 1
                    counts[reason, _HOSTS_OF_REFUSED] += hosts

    def counts(self) -> dict[str, Any]:
        """``rate``: decisions per step, of which the last ends after ``ends_at`` (epoch seconds).

        ``outcomes``: decisions of the last hour; ``reasons``: what each filter and reason did in
        it, those that refused the most requests first.
        """
        now = self._clock()
        with self._lock:
            steps = self._rate.latest(now)
            total = sum(self._hour.latest(now), Counter())
        rate = {
            "step_seconds": RATE_STEP_SECONDS,
            "ends_at": now,
            "selected": [each[SELECTED] for each in steps],
            "refused": [each.total() - each[SELECTED] for each in steps],
        }
        outcomes = {key: number for key, number in total.items() if isinstance(key, str)}
        reasons = list(dict.fromkeys(key[0] for key in total if not isinstance(key, str)))
        reasons.sort(key=lambda reason: (-total[reason, _REFUSED], -total[reason, _HOSTS]))
        found = [
            {"filter": each[0], "reason": each[1], **{kind: total[each, kind] for kind in _KINDS}}
            for each in reasons
        ]
        window = REASON_STEP_SECONDS * REASON_STEPS
        return {"rate": rate, "window_seconds": window, "outcomes": outcomes, "reasons": found}


def _removed_by(record: DecisionRecord) -> Iterator[tuple[Reason, int]]:
    """Each reason once, with the hosts that it removed: from the instance that got none, if any."""
    refusal = record.refusal
    filters = record.filters if refusal is None or not refusal.filters else refusal.filters
    several = [(BEFORE_FILTERS, record.never_evaluated)]
    for name, removed in (*several, *((each.name, each.removed) for each in filters)):
        for code, hosts in removed.items():
            if hosts:
                yield (name, code), hosts
