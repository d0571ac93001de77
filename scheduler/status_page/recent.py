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
_REFUSED, _HOSTS_OF_REFUSED, _HOSTS = "refused_requests", "hosts_of_refused", "hosts"


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

    def total(self, now: float) -> Counter[Any]:
        """All of them together."""
        return sum(self.latest(now), Counter())


class RecentDecisions:
    """Counts every decision of the last hour by outcome, and what removed hosts.

    *clock* gives seconds since the epoch.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._rate = _Ring(RATE_STEP_SECONDS, RATE_STEPS)
        self._outcomes = _Ring(REASON_STEP_SECONDS, REASON_STEPS)
        self._reasons = _Ring(REASON_STEP_SECONDS, REASON_STEPS)

    def note(self, record: DecisionRecord) -> None:
        """Count a finished decision."""
        now = self._clock()
        is_refused = record.outcome != SELECTED
        with self._lock:
            self._rate.at(now)[record.outcome] += 1
            self._outcomes.at(now)[record.outcome] += 1
            counts = self._reasons.at(now)
            for reason, hosts in _removed_by(record):
                counts[reason, _HOSTS] += hosts
                if is_refused:
                    counts[reason, _REFUSED] += 1
                    counts[reason, _HOSTS_OF_REFUSED] += hosts

    def rate(self) -> dict[str, Any]:
        """Decisions per step; the last step ends after ``ends_at`` (seconds since the epoch)."""
        with self._lock:
            now = self._clock()
            steps = self._rate.latest(now)
        return {
            "step_seconds": RATE_STEP_SECONDS,
            "ends_at": now,
            "selected": [each[SELECTED] for each in steps],
            "refused": [each.total() - each[SELECTED] for each in steps],
        }

    def outcomes(self) -> dict[str, int]:
        """Decisions per outcome."""
        with self._lock:
            return dict(self._outcomes.total(self._clock()))

    def reasons(self) -> list[dict[str, Any]]:
        """Per filter and reason what it did, those that refused the most requests first."""
        with self._lock:
            total = self._reasons.total(self._clock())
        reasons = list(dict.fromkeys(reason for reason, _what in total))
        reasons.sort(key=lambda reason: (-total[reason, _REFUSED], -total[reason, _HOSTS]))
        kinds = (_REFUSED, _HOSTS_OF_REFUSED, _HOSTS)
        return [
            {"filter": each[0], "reason": each[1], **{kind: total[each, kind] for kind in kinds}}
            for each in reasons
        ]


def _removed_by(record: DecisionRecord) -> Iterator[tuple[Reason, int]]:
    """Each reason once, with the hosts that it removed: from the instance that got none, if any."""
    refusal = record.refusal
    for cause, hosts in record.never_evaluated.items():
        if hosts:
            yield (BEFORE_FILTERS, cause), hosts
    for count in record.filters if refusal is None or not refusal.filters else refusal.filters:
        for code, hosts in count.removed.items():
            if hosts:
                yield (count.name, code), hosts
