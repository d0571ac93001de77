"""Smallest fleet that holds a workload, and largest workload that a fleet holds.

A fleet holds a workload when it refuses no more requests of it than the whole fleet does.  Trials
take away random hosts.  Each is a bisection, near the first result; a play ends as it fails.
"""

import functools
import math
import multiprocessing
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from scheduler.replay.run import Run, play
from scheduler.replay.virtual_fleet import VirtualFleet
from scheduler.replay.workload import Workload

COMPACT_TRIALS: Final = 11
INFLATE_TRIALS: Final = 3
#: Bisections end at so much of the fleet, or of the workload.
PRECISION: Final = 0.01
#: More is not tried.
MOST_TIMES: Final = 64.0


@dataclass(frozen=True)
class Subject:
    """A fleet without the servers of the workload, and how many requests it refuses."""

    fleet: VirtualFleet
    workload: Workload
    refused: int
    seed: int
    #: Makes the run of a play.
    new_run: Callable[..., Run] = Run

    def holds(self, workload: Workload, without: Iterable[str] = ()) -> bool:
        """True when the fleet *without* some hosts refuses no more of *workload*."""
        fleet = self.fleet.copy()
        for host in without:
            fleet.take_out(host)
        run = self.new_run(fleet, sample_seconds=math.inf)
        return play(run, workload.arrivals, self.refused)


def compact(subject: Subject, number: int, near: int | None) -> int:
    """Number of hosts of the smallest fleet in trial *number*; it may be *near* another's."""
    hosts = sorted(subject.fleet.table.rows_of_host)
    random.Random(f"{subject.seed} {number}").shuffle(hosts)
    precision = max(1, int(len(hosts) * PRECISION))
    return _last(
        lambda count: subject.holds(subject.workload, hosts[count:]),
        (len(hosts), 0, precision),
        near or len(hosts) // 2,
        precision if near else len(hosts),
    )


def inflate(subject: Subject, number: int, near: float | None) -> float:
    """Times that the workload fits in trial *number*, up to MOST_TIMES."""
    phase = random.Random(f"{subject.seed} {number}").random()
    once = round(1 / PRECISION)
    found = _last(
        lambda count: subject.holds(subject.workload.inflated(count * PRECISION, phase)),
        (once, round(MOST_TIMES / PRECISION) + 1, 1),
        2 * once if near is None else round(near / PRECISION),
        2 * once if near is None else 1,
    )
    return round(found * PRECISION, 3)


def _last(test: Callable[[int], bool], bounds: tuple[int, int, int], near: int, step: int) -> int:
    """The last number that passes *test*: one of the *bounds* does, one does not, to the third.

    It is sought from *near* on in steps that double, then by bisection.
    """
    holds, fails, precision = bounds
    away = 1 if fails > holds else -1
    while abs(fails - holds) > precision:
        is_between = min(holds, fails) < near < max(holds, fails)
        at = near if is_between else (holds + fails) // 2
        if test(at):
            holds, near = at, at + away * step
        else:
            fails, near = at, at - away * step
        step *= 2
    return holds


#: Work of the processes of a pool, which they have by being forked.
_subject: list[Subject] = []


def _trial(work: Callable[..., Any], near: Any, number: int) -> Any:
    return work(_subject[0], number, near)


def trials(work: Callable[..., Any], subject: Subject, count: int, jobs: int) -> Iterator[Any]:
    """The result of each trial of *work*, in order; after the first, *jobs* at a time."""
    _subject[:] = [subject]
    try:
        yield (first := work(subject, 0, None))
        trial, numbers = functools.partial(_trial, work, first), range(1, count)
        if jobs == 1:
            yield from map(trial, numbers)
            return
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(min(jobs, count), context) as pool:
            yield from pool.map(trial, numbers)
    finally:
        _subject.clear()


def distribution(results: Sequence[float], bound: float) -> dict[str, Any]:
    """Least, median and most of the *results*, and all of them in order.

    Each that has reached the *bound* may be more, the median if ``at_least`` is true.
    """
    found = sorted(results)
    median = found[len(found) // 2]
    return {
        "least": found[0],
        "median": median,
        "most": found[-1],
        "trials": found,
        "at_least": median >= bound,
    }
