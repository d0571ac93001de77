"""What the decisions of the last minutes came to: counts in a ring of buckets of time."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler.engine.record import SELECTED, DecisionRecord

#: The rate is shown in steps of so many seconds, and so many of them.
RATE_STEP_SECONDS: Final = 5
RATE_STEPS: Final = 60
#: The same for the counts of reasons.
REASON_STEP_SECONDS: Final = 60
REASON_STEPS: Final = 60
#: The reason stands for hosts that no filter was asked about.
BEFORE_FILTERS: Final = None

Reason = tuple[str | None, str]
"""Filter and reason code."""


@dataclass(slots=True)
class Removed:
    """What one reason did: refused requests that it took hosts from, and hosts it removed."""

    refused_requests: int = 0
    hosts_of_refused: int = 0
    hosts: int = 0


@dataclass(slots=True)
class _Step:
    outcomes: Counter[str] = field(default_factory=Counter)
    removed: dict[Reason, Removed] = field(default_factory=dict)


class _Ring:
    """The latest *steps* steps of *seconds* each, by their number since the epoch."""

    def __init__(self, seconds: int, steps: int) -> None:
        self.seconds = seconds
        self.steps = steps
        self._kept: dict[int, _Step] = {}

    def at(self, now: float) -> _Step:
        number = int(now // self.seconds)
        step = self._kept.get(number)
        if step is None:
            self._kept = {n: s for n, s in self._kept.items() if n > number - self.steps}
            step = self._kept[number] = _Step()
        return step

    def latest(self, now: float) -> list[_Step | None]:
        """Oldest first; None where nothing happened.  The last one is still going on."""
        last = int(now // self.seconds)
        return [self._kept.get(number) for number in range(last - self.steps + 1, last + 1)]


class RecentDecisions:
    """Told of every decision; tells how many there were and what removed hosts.

    *clock* gives seconds since the epoch.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._rate = _Ring(RATE_STEP_SECONDS, RATE_STEPS)
        self._reasons = _Ring(REASON_STEP_SECONDS, REASON_STEPS)

    def note(self, record: DecisionRecord) -> None:
        """Count a finished decision."""
        now = self._clock()
        is_refused = record.outcome != SELECTED
        with self._lock:
            self._rate.at(now).outcomes[record.outcome] += 1
            step = self._reasons.at(now)
            step.outcomes[record.outcome] += 1
            for reason, hosts in _removed_by(record):
                count = step.removed.setdefault(reason, Removed())
                count.hosts += hosts
                if is_refused:
                    count.refused_requests += 1
                    count.hosts_of_refused += hosts

    def rate(self) -> dict[str, Any]:
        """Decisions per step; the last step ends after ``ends_at`` (seconds since the epoch)."""
        with self._lock:
            now = self._clock()
            steps = [each.outcomes if each else Counter() for each in self._rate.latest(now)]
        selected = [each[SELECTED] for each in steps]
        return {
            "step_seconds": RATE_STEP_SECONDS,
            "ends_at": now,
            "selected": selected,
            "refused": [each.total() - good for each, good in zip(steps, selected, strict=True)],
        }

    def outcomes(self) -> dict[str, int]:
        """Decisions per outcome."""
        with self._lock:
            steps = self._reasons.latest(self._clock())
            total: Counter[str] = Counter()
            for each in steps:
                total.update(each.outcomes if each else ())
        return dict(total)

    def reasons(self) -> list[dict[str, Any]]:
        """Per filter and reason what it did, those that refused the most requests first."""
        total: dict[Reason, Removed] = {}
        with self._lock:
            for step in self._reasons.latest(self._clock()):
                for reason, count in step.removed.items() if step else ():
                    sum_ = total.setdefault(reason, Removed())
                    sum_.refused_requests += count.refused_requests
                    sum_.hosts_of_refused += count.hosts_of_refused
                    sum_.hosts += count.hosts
        most = sorted(total.items(), key=lambda pair: (-pair[1].refused_requests, -pair[1].hosts))
        return [
            {
                "filter": reason[0],
                "reason": reason[1],
                "refused_requests": count.refused_requests,
                "hosts_of_refused": count.hosts_of_refused,
                "hosts": count.hosts,
            }
            for reason, count in most
        ]


def _removed_by(record: DecisionRecord) -> list[tuple[Reason, int]]:
    """Each reason once, with the hosts that it removed: from the instance that got none, if any."""
    refusal = record.refusal
    filters = record.filters if refusal is None or not refusal.filters else refusal.filters
    before = [((BEFORE_FILTERS, cause), hosts) for cause, hosts in record.never_evaluated.items()]
    inside = [
        ((count.name, code), hosts) for count in filters for code, hosts in count.removed.items()
    ]
    return [(reason, hosts) for reason, hosts in before + inside if hosts]
