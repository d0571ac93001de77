"""Several schedulers on one simulated fleet and one day of a public cloud: claims that are lost.

``python -m benchmarks.schedulers TRACE`` takes the packed Azure trace.  Each request reads what is
claimed, decides, and claims some milliseconds later.  It loses where another one has claimed on
one of its hosts meanwhile, and decides anew.
"""

import argparse
import bisect
import heapq
import itertools
import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import configuration
from benchmarks.sample import percentile
from scheduler.hosts.reservations import Reservation
from scheduler.replay.azure import read_azure
from scheduler.replay.run import DAY
from scheduler.replay.virtual_fleet import VirtualFleet
from scheduler.replay.workload import Arrival, Faults

#: Between two times of the trace.
PERIOD_SECONDS = 300.0
FLEET = "{} × 64 cores/256 GiB, 3 zones"
PER_CENT = 100


class Claimed(NamedTuple):
    """A claim that is written *at* that second."""

    at: float
    servers: Sequence[Reservation]


def arrivals(given: argparse.Namespace) -> list[tuple[float, Arrival]]:
    """The busiest part of the day, some copies of it; seconds from 0."""
    rng = random.Random(given.seed)
    trace = read_azure(given.trace, given.seed, Faults())
    day = trace.between(given.day * DAY, (given.day + 1) * DAY).arrivals
    times, length = [each.at for each in day], given.minutes * 60
    counts = [bisect.bisect_left(times, at + length) - number for number, at in enumerate(times)]
    first = counts.index(max(counts))
    busy = day[first : first + counts[first]]
    # Times of the trace are whole periods of five minutes: its requests come evenly within them.
    found = [
        (each.at - busy[0].at + rng.uniform(0, PERIOD_SECONDS), each)
        for _copy in range(given.copies)
        for each in busy
    ]
    return sorted(found, key=lambda pair: pair[0])


def a_fleet(hosts: int, subset: int = 1) -> VirtualFleet:
    """Empty hosts; of the best *subset* any may be chosen."""
    options = {"filter_scheduler": {"host_subset_size": subset}}
    conf = configuration.in_process({"driver": "filter_scheduler", "options": options})
    return VirtualFleet.from_description(conf, FLEET.format(hosts))


class Race:
    """*schedulers* that decide on one *fleet*; a claim takes *seconds* from read to write."""

    def __init__(self, fleet: VirtualFleet, schedulers: int, seconds: float) -> None:
        self.fleet = fleet
        self.seconds = seconds
        self.decisions = self.lost = self.refused = 0
        self.waits: list[float] = []
        self._free = [0.0] * schedulers
        self._claimed: list[Claimed] = []
        self._ends: list[tuple[float, int, Reservation]] = []
        self._numbers = itertools.count()

    def play(self, requests: Sequence[tuple[float, Arrival]]) -> None:
        """Decide all *requests*, each by the scheduler that is free first."""
        due = [(at, next(self._numbers), at, each) for at, each in requests]
        heapq.heapify(due)
        while due:
            at, _number, came, arrival = heapq.heappop(due)
            free = heapq.heappop(self._free)
            if free > at:
                heapq.heappush(self._free, free)
                heapq.heappush(due, (free, next(self._numbers), came, arrival))
                continue
            heapq.heappush(self._free, at + self.seconds)
            if self._is_claimed(at, arrival):
                self.waits.append(at + self.seconds - came)
            else:
                heapq.heappush(due, (at + self.seconds, next(self._numbers), came, arrival))

    def _is_claimed(self, at: float, arrival: Arrival) -> bool:
        """Decide on what was claimed before *at*; False where others claim on its hosts first."""
        self.decisions += 1
        while self._ends and self._ends[0][0] <= at:
            self.fleet.remove([heapq.heappop(self._ends)[-1]])
        self._claimed = [each for each in self._claimed if each.at > at]
        unseen = list(itertools.chain.from_iterable(each.servers for each in self._claimed))
        spec = arrival.request()
        with self.fleet.reservations.without(unseen):
            outcome = self.fleet.place(spec, seed=self.decisions)
        if outcome.is_refused:
            self.refused += 1
            return True
        if {each.key for each in unseen} & {each.key for each in outcome.servers}:
            self.fleet.remove(outcome.servers)
            self.lost += 1
            return False
        self._claimed.append(Claimed(at + self.seconds, outcome.servers))
        for server, lifetime in zip(outcome.servers, arrival.lifetimes, strict=True):
            heapq.heappush(self._ends, (at + lifetime, next(self._numbers), server))
        return True


def rows(race: Race, requests: int, took: float) -> Iterator[str]:
    """The result, a line each."""
    waits = sorted(race.waits)
    yield f"{requests:,} requests, {race.refused} refused"
    yield f"{race.lost:,} claims lost: {PER_CENT * race.lost / race.decisions:.2f} % of decisions"
    yield f"answered within {1000 * percentile(waits, 50):.1f} ms (median)"
    yield f"99 % within {1000 * percentile(waits, 99):.1f} ms"
    yield f"{1000 * took / race.decisions:.2f} ms a decision here"


def main() -> int:
    """Play the day; print what became of it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.schedulers", description=__doc__)
    add = parser.add_argument
    add("trace", type=Path, help="folder of the packed trace")
    add("--hosts", type=int, default=100_000)
    add("--copies", type=int, default=50, help="of the trace, which fills 2,000 hosts")
    add("--schedulers", type=int, nargs="+", default=[1, 10])
    add("--milliseconds", type=float, default=20.0, help="from the read to the written claim")
    add("--subset", type=int, nargs="+", default=[1, 100], help="host_subset_size")
    add("--day", type=int, default=25)
    add("--minutes", type=int, default=5, help="taken of the day: its busiest part")
    add("--seed", type=int, default=0)
    given = parser.parse_args()
    requests = arrivals(given)
    for schedulers, subset in itertools.product(given.schedulers, given.subset):
        race = Race(a_fleet(given.hosts, subset), schedulers, given.milliseconds / 1000)
        began = time.process_time()
        race.play(requests)
        sys.stdout.write(f"{schedulers} schedulers, host_subset_size = {subset}:\n")
        for line in rows(race, len(requests), time.process_time() - began):
            sys.stdout.write(f"  {line}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
