"""Runs of many seeds, the same run again as a timeline, and a smaller one that fails alike."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from tests.simulation.kernel import Violation
from tests.simulation.plans import Plan
from tests.simulation.world import World

#: Other orders that a smaller plan is tried with.
ORDERS: Final = 30


@dataclass
class Found:
    """Of several runs: switch points, what happened, and what failed first."""

    runs: int = 0
    points: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[int, str]] = field(default_factory=list)

    def add(self, other: "Found") -> None:
        self.runs += other.runs
        self.points += other.points
        self.counts.update(other.counts)
        self.failed += other.failed


def failure(plan: Plan, tell: Callable[[str], None] | None = None) -> tuple[str, str, World]:
    """A word and a text for what fails in a run, both empty if nothing does."""
    world = World(plan)
    if tell is not None:
        world.kernel.tell = lambda kind, text: tell(
            f"{world.kernel.now:9.4f}  {world.kernel.current.process.name:8} {kind:7} {text}"
        )
    try:
        world.run()
    except Violation as violation:
        return violation.what, str(violation), world
    except Exception as error:  # noqa: BLE001 - whatever the product raises is a failure
        return type(error).__name__, f"{type(error).__name__}: {error}", world
    return "", "", world


def explore(seeds: Iterator[int], points: int, seconds: float, **kind: Any) -> Found:
    """Run seeds until there were so many switch points, the time is over, or one fails.

    *kind* is that of the plans.  The time is that of the processor: others may need it, too.
    """
    found, ends_at = Found(), time.process_time() + seconds
    for seed in seeds:
        what, text, world = failure(Plan.from_seed(seed, **kind))
        found.runs += 1
        found.points += world.kernel.steps
        found.counts.update(world.counts)
        if what:
            found.failed.append((seed, text))
            break
        if found.points >= points or time.process_time() > ends_at:
            break
    return found


def timeline(plan: Plan) -> list[str]:
    """The events of a run, a line each, and at the end what fails."""
    lines: list[str] = []
    _what, text, world = failure(plan, lines.append)
    return [*lines, text or f"nothing fails; digest {world.kernel.digest:x}"]


def shrunk(plan: Plan, seconds: float) -> Plan:
    """A smaller plan, with any order of events, in which the same fails."""
    what, ends_at = failure(plan)[0], time.monotonic() + seconds
    rng = random.Random(plan.seed)
    is_smaller = True
    while is_smaller and time.monotonic() < ends_at:
        is_smaller = False
        for smaller in _smaller(plan):
            found = _fails_alike(smaller, what, rng, ends_at)
            if found is not None:
                plan, is_smaller = found, True
                break
    return plan


def _fails_alike(plan: Plan, what: str, rng: random.Random, ends_at: float) -> Plan | None:
    for number in range(ORDERS):
        if time.monotonic() > ends_at:
            return None
        order = plan.schedule if number == 0 else rng.getrandbits(32)
        tried = plan.but(schedule=order)
        if failure(tried)[0] == what:
            return tried
    return None


def _smaller(plan: Plan) -> Iterator[Plan]:
    """Plans with less in them, the much smaller ones first."""
    for name in ("requests", "faults"):
        several = getattr(plan, name)
        size = len(several)
        while size:
            for start in range(0, len(several), size):
                yield plan.but(**{name: several[:start] + several[start + size :]})
            size //= 2
    for name in ("twice", "lost", "late", "slow"):
        if getattr(plan, name):
            yield plan.but(**{name: 0.0})
    if plan.schedulers > 1:
        faults = tuple(each for each in plan.faults if each.target < plan.schedulers - 1)
        yield plan.but(schedulers=plan.schedulers - 1, faults=faults)
    if plan.hosts > 1:
        yield plan.but(hosts=plan.hosts - 1)
    if plan.stick < 0.9:
        yield plan.but(stick=0.9)
