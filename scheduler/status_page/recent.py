"""Outcomes of the decisions of the last hour, servers of the last day: counts in steps of time."""

import math
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
#: Counts of a reason: refused requests that it took hosts from, and all hosts.
_KINDS = _REFUSED, _HOSTS = "refused_requests", "hosts"
#: Servers and lost races are counted in longer steps, for a day.
LONG_STEP_SECONDS: Final = 300
WINDOWS: Final = {"hour": 12, "day": 288}
#: Times are counted in buckets, so many for each doubling, that is to about a tenth.
BUCKETS_PER_DOUBLING: Final = 4
_LEAST_MS: Final = 0.01


class RecentDecisions:
    """Counts of the last hour: decisions by outcome, what removed hosts; *clock*: epoch seconds."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        #: By the step's number since the epoch the counts of outcomes, of buckets of time, and of
        #: reasons together with one of _KINDS.
        self._steps: dict[int, Counter[Any]] = {}
        self._long_steps: dict[int, Counter[str]] = {}

    def note(self, record: DecisionRecord) -> None:
        now = self._clock()
        is_refused = record.outcome != SELECTED
        with self._lock:
            servers = _step(self._long_steps, int(now // LONG_STEP_SECONDS), WINDOWS["day"])
            servers["refused" if is_refused else "placed"] += record.num_instances
            servers["races_lost"] += record.races_lost
            counts = _step(self._steps, int(now // STEP_SECONDS), STEPS)
            counts[record.outcome] += 1
            doublings = math.log2(max(record.elapsed_ms, _LEAST_MS))
            counts[round(BUCKETS_PER_DOUBLING * doublings)] += 1
            for reason, hosts in _removed_by(record):
                counts[reason, _HOSTS] += hosts
                if is_refused:
                    counts[reason, _REFUSED] += 1

    def counts(self) -> dict[str, Any]:
        """``rate``: decisions per step, of which the last ends after ``ends_at`` (epoch seconds).

        ``outcomes``: decisions of the last hour; ``reasons``: what each filter and reason did in
        it, those that refused the most requests first; ``times``: their number by bucket of time;
        ``servers``: those placed and refused, and races lost, by window.
        """
        now, total = self._clock(), Counter[Any]()
        last = int(now // STEP_SECONDS)
        with self._lock:
            steps = [Counter(self._steps.get(n)) for n in range(last - STEPS + 1, last + 1)]
            first = int(now // LONG_STEP_SECONDS) + 1
            servers = {
                name: sum((s for n, s in self._long_steps.items() if n >= first - some), Counter())
                for name, some in WINDOWS.items()
            }
        for step in steps:
            total.update(step)
        rate = {
            "step_seconds": STEP_SECONDS,
            "ends_at": now,
            "selected": [each[SELECTED] for each in steps[-RATE_STEPS:]],
            "refused": [_outcomes(each).total() - each[SELECTED] for each in steps[-RATE_STEPS:]],
        }
        outcomes = _outcomes(total)
        reasons = list(dict.fromkeys(key[0] for key in total if isinstance(key, tuple)))
        reasons.sort(key=lambda reason: (-total[reason, _REFUSED], -total[reason, _HOSTS]))
        found = [
            {"filter": each[0], "reason": each[1], **{kind: total[each, kind] for kind in _KINDS}}
            for each in reasons
        ]
        times = {str(key): number for key, number in total.items() if isinstance(key, int)}
        counted = {"outcomes": outcomes, "times": times, "servers": servers, "reasons": found}
        return {"rate": rate, "buckets_per_doubling": BUCKETS_PER_DOUBLING, **counted}


def _step(steps: dict[int, Counter[Any]], number: int, most: int) -> Counter[Any]:
    """The counts of one of *steps*; with a new one, those that are too old go."""
    if number not in steps:
        for old in [each for each in steps if each <= number - most]:
            del steps[old]
    return steps.setdefault(number, Counter())


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
