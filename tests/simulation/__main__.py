"""Simulate claims: many seeds, planted faults, or one seed again.

python -m tests.simulation --points 10000000        # until so many switch points have passed
python -m tests.simulation --plants                 # every planted fault must be found
python -m tests.simulation --replay 4711            # the timeline of one seed
python -m tests.simulation --shrink 4711            # a smaller one that fails alike
"""

import argparse
import concurrent.futures
import itertools
import os
import sys
import time
from collections.abc import Sequence
from typing import Final

from tests.simulation import plants
from tests.simulation.plans import Plan
from tests.simulation.runs import Found, explore, failure, shrunk, timeline
from tests.simulation.world import simulating
from tests.world import results

PLANT_SECONDS: Final = 60.0
SHRINK_SECONDS: Final = 60.0
#: Switch points of one piece of work.
PIECE: Final = 250_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run; the status is 1 if something fails, or a planted fault is not found."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--points", type=int, default=0, help="switch points to pass")
    parser.add_argument("--seconds", type=float, default=3600.0, help="at most")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    named = {"metavar": "NAME", "choices": plants.PLANTS}
    parser.add_argument("--plants", nargs="*", **named, help="planted faults, or all")
    parser.add_argument("--replay", type=int, metavar="SEED")
    parser.add_argument("--shrink", type=int, metavar="SEED")
    parser.add_argument("--planted", **named, help="replay or shrink with this fault")
    asked = parser.parse_args(argv)
    if os.environ.get("PYTHONHASHSEED") != "0":  # sets of texts have another order in each process
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]])
    if asked.replay is not None or asked.shrink is not None:
        return _show(asked)
    passed = True
    if asked.points:
        passed = _explore(asked.points, asked.seconds, asked.first_seed, asked.jobs)
    if asked.plants is not None:
        passed &= _plant(asked.plants or [*plants.PLANTS], asked.jobs)
    return 0 if passed else 1


def _show(asked: argparse.Namespace) -> int:
    with simulating(), plants.planted(asked.planted):
        seed = asked.replay if asked.shrink is None else asked.shrink
        plan = Plan.from_seed(seed, **plants.IN_PLANS.get(asked.planted, {}))
        if asked.shrink is not None:
            plan = shrunk(plan, SHRINK_SECONDS)
            _say(f"{plan}\n")
        _say("\n".join(timeline(plan)))
        return 1 if failure(plan)[0] else 0


def _piece(seeds: range, points: int, seconds: float) -> Found:
    with simulating():
        return explore(iter(seeds), points, seconds)


def _explore(points: int, seconds: float, first: int, jobs: int) -> bool:
    """Run until so many points have passed or the time is over; tell what was found."""
    found, began = Found(), time.monotonic()
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        starts = itertools.count(first, PIECE)
        running = set()
        while not found.failed and found.points < points:
            left = seconds - (time.monotonic() - began)
            if left <= 0:
                break
            while len(running) < jobs and found.points + PIECE * len(running) < points:
                start = next(starts)
                seeds = range(start, start + PIECE)
                running.add(pool.submit(_piece, seeds, PIECE, left))
            done, running = concurrent.futures.wait(running, return_when="FIRST_COMPLETED")
            for each in done:
                found.add(each.result())
        for each in running:
            each.cancel()
    taken = time.monotonic() - began
    counts = ", ".join(f"{number} {name}" for name, number in sorted(found.counts.items()))
    _say(f"{found.runs} runs, {found.points:,} switch points, {taken:.0f} s: {counts}")
    for seed, text in found.failed:
        _say(f"seed {seed}: {text}\n  repeat: python -m tests.simulation --shrink {seed}")
    if not found.failed:
        done = f"{found.points:,} switch points in {found.runs:,} runs"
        results.publish(f"{done}, {taken / 60:.0f} minutes: 0 violations.\n")
    return not found.failed and found.points >= points


def _plant(names: Sequence[str], jobs: int) -> bool:
    """Plant each fault, and tell how long it took to find it."""
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        several = {name: pool.submit(_found, name) for name in names}
        found = {name: each.result() for name, each in several.items()}
    for name, (seconds, runs, text) in found.items():
        _say(f"{name}: {f'{seconds:.1f} s, {runs} runs: {text}' if text else 'NOT FOUND'}")
    slowest = max(seconds for seconds, *_others in found.values())
    number = sum(bool(text) for *_others, text in found.values())
    results.publish(f"{number} of {len(found)} faults found, each in {slowest:.0f} s at most.")
    return all(text for *_others, text in found.values())


def _found(name: str) -> tuple[float, int, str]:
    began, kind = time.process_time(), plants.IN_PLANS.get(name, {})
    first, _word = plants.AS_IT_WAS.get(name, (1, ""))
    with simulating(), plants.planted(name):
        found = explore(itertools.count(first), sys.maxsize, PLANT_SECONDS, **kind)
    taken, text = time.process_time() - began, ""
    for seed, told in found.failed:
        with simulating():  # without the planted fault nothing fails
            fails = failure(Plan.from_seed(seed, **kind))[0]
        text = "" if fails else f"seed {seed}: {told[:80]}"
    return taken, found.runs, text


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
