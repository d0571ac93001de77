"""Outcomes of the decisions of the last hour: counts in steps of time."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

from scheduler.engine.record import SELECTED, DecisionRecord

#: Counts are kept for so many steps of so many seconds.
STEP_SECONDS: Final = 5
STEPS: Final = 720
#: The rate is shown for the latest so many of them.
RATE_STEPS: Final = 60
#: The filter of hosts that no filter was asked about.
BEFORE_FILTERS: Final = None

Reason = tuple[str | None, str]
"""Filter and reason code."""
#: Counts of a reason: refused requests that it took hosts from, their hosts, all hosts.
_KINDS = _REFUSED, _HOSTS_OF_REFUSED, _HOSTS = "refused_requests", "hosts_of_refused", "hosts"


class RecentDecisions:
    """Counts of the last hour: decisions by outcome, what removed hosts; *clock*: epoch seconds."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        #: By the step's number since the epoch the counts of outcomes, and of reasons together
        #: with one of _KINDS.
        self._steps: dict[int, Counter[Any]] = {}

    def note(self, record: DecisionRecord) -> None:
        """Count a finished decision."""
        number = int(self._clock() // STEP_SECONDS)
        is_refused = record.outcome != SELECTED
        with self._lock:
            if number not in self._steps:
                self._steps = {n: step for n, step in self._steps.items() if n > number - STEPS}
            counts = self._steps.setdefault(number, Counter())
            counts[record.outcome] += 1
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
        now, total = self._clock(), Counter[Any]()
        last = int(now // STEP_SECONDS)
        with self._lock:
            steps = [Counter(self._steps.get(n)) for n in range(last - STEPS + 1, last + 1)]
        for step in steps:
            total.update(step)
        rate = {
            "step_seconds": STEP_SECONDS,
            "ends_at": now,
            "selected": [each[SELECTED] for each in steps[-RATE_STEPS:]],
            "refused": [_outcomes(each).total() - each[SELECTED] for each in steps[-RATE_STEPS:]],
        }
        outcomes = _outcomes(total)
        reasons = list(dict.fromkeys(key[0] for key in total if not isinstance(key, str)))
        reasons.sort(key=lambda reason: (-total[reason, _REFUSED], -total[reason, _HOSTS]))
        found = [
            {"filter": each[0], "reason": each[1], **{kind: total[each, kind] for kind in _KINDS}}
            for each in reasons
        ]
        window = STEP_SECONDS * STEPS
        return {"rate": rate, "window_seconds": window, "outcomes": outcomes, "reasons": found}


def _outcomes(counts: Counter[Any]) -> Counter[str]:
    return Counter({key: number for key, number in counts.items() if isinstance(key, str)})


def _removed_by(record: DecisionRecord) -> Iterator[tuple[Reason, int]]:
    """Each reason once, with the hosts that it removed: from the instance that got none, if any."""
    refusal = record.refusal
    filters = record.filters if refusal is None or not refusal.filters else refusal.filters
    several = [(BEFORE_FILTERS, record.never_evaluated)]
    for name, removed in (*several, *((each.name, each.removed) for each in filters)):
        for code, hosts in removed.items():
            if hosts:
                yield (name, code), hosts
