"""Smallest fleet that holds a workload, and largest workload that a fleet holds.

A fleet holds a workload when it refuses no more requests of it than the whole fleet does.  Trials
take away random hosts; each is a bisection, and a play stops as soon as it fails.
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
MOST_TIMES: Final = 64.0


@dataclass(frozen=True)
class Subject:
    """A fleet without the servers of the workload, and how many requests it refuses."""

    fleet: VirtualFleet
    workload: Workload
    refused: int
    seed: int

    def holds(self, workload: Workload, without: Iterable[str] = ()) -> bool:
        """True when the fleet *without* some hosts refuses no more of *workload*."""
        fleet = self.fleet.copy()
        for host in without:
            fleet.take_out(host)
        run = Run(fleet, seed=self.seed, sample_seconds=math.inf, events=workload.events)
        return play(run, workload.arrivals, self.refused)


def compact(subject: Subject, number: int) -> int:
    """Number of hosts of the smallest fleet in trial *number*."""
    hosts = sorted(subject.fleet.table.rows_of_host)
    random.Random(f"{subject.seed} {number}").shuffle(hosts)
    fails, holds = 0, len(hosts)
    while holds - fails > max(1, int(len(hosts) * PRECISION)):
        middle = (fails + holds) // 2
        if subject.holds(subject.workload, hosts[middle:]):
            holds = middle
        else:
            fails = middle
    return holds


def inflate(subject: Subject, number: int) -> float:
    """Times that the workload fits in trial *number*, up to MOST_TIMES."""
    phase = random.Random(f"{subject.seed} {number}").random()

    @functools.cache
    def fits(factor: float) -> bool:
        return subject.holds(subject.workload.inflated(factor, phase))

    holds, fails = 1.0, 2.0
    while fails <= MOST_TIMES and fits(fails):
        holds, fails = fails, fails * 2
    while fails - holds > PRECISION and holds < MOST_TIMES:
        middle = round((holds + fails) / 2, 6)
        if fits(middle):
            holds = middle
        else:
            fails = middle
    return round(holds, 3)


#: Work of the processes of a pool, which they have by being forked.
_subject: list[Subject] = []


def _trial(work: Callable[[Subject, int], Any], number: int) -> Any:
    return work(_subject[0], number)


def trials(
    work: Callable[[Subject, int], Any], subject: Subject, count: int, jobs: int
) -> Iterator[Any]:
    """The result of each trial of *work*, in order, *jobs* at a time."""
    _subject[:] = [subject]
    numbers: Sequence[int] = range(count)
    try:
        if jobs == 1:
            yield from map(functools.partial(_trial, work), numbers)
            return
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(jobs, context) as pool:
            yield from pool.map(functools.partial(_trial, work), numbers)
    finally:
        _subject.clear()


def distribution(results: Sequence[float]) -> dict[str, Any]:
    """Least, median and most of the *results*, and all of them in order."""
    found = sorted(results)
    return {
        "least": found[0],
        "median": found[len(found) // 2],
        "most": found[-1],
        "trials": found,
    }
