"""Does it grow?  A slope that single outliers do not move, what is allowed, and the tables."""

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.soak import look
from tests.world import machine, results

#: Samples of the first part are not judged: memory that is bounded fills up.
WARM_UP_SHARE: Final = 0.4
LEAST_SAMPLES: Final = 6
#: What goes up and down is not said to grow by less than so many times the width of that.
NOISE: Final = 2.0
#: Per quantity, or its first word, what it may grow by: absolutely, and as a share of the median.
#: Tables of what came in the last minutes follow the rate, which others on the machine change.
ALLOWED: Final[Mapping[str, tuple[float, float]]] = {
    "rss_mib": (8.0, 0.04),
    "fds": (2.0, 0.0),
    "threads": (1.0, 0.0),
    "python_threads": (1.0, 0.0),
    "greenlets": (4.0, 0.0),
    # Some for each claim and server of the last minutes, which follow the rate.
    "gc_objects": (4000.0, 0.25),
    # Of one type, where they are judged by types: caches fill up, answers come and go.
    "objects": (5000.0, 0.1),
    "rows": (60.0, 0.08),
    "rows claims": (60.0, 0.4),
    "rows instances": (60.0, 0.4),
    "rows decision_instances": (60.0, 0.4),
    "series": (10.0, 0.02),
    "queues": (2.0, 0.0),
    "messages": (40.0, 0.0),
    "exchanges": (2.0, 0.0),
    "connections": (2.0, 0.0),
}

HEAD: Final = (
    *("samples", "after the warm-up", "at the end", "slope over the run", "allowed", ""),
)
WORDS: Final = {True: "flat", False: "GROWS", None: "too short to judge"}
SECONDS, DECISIONS = "seconds", "decisions"
Points = Sequence[tuple[float, float]]
"""How far it was, in seconds or decisions since the begin, and the value then."""


@dataclass(frozen=True)
class Scale:
    """How a form is judged: *by* what it is told how far it is, SECONDS or DECISIONS.

    The warm-up takes at *least* so much of that, for the quantities in *least_of* at least so much.
    *allowed* takes the place of what ALLOWED says of some, *allowance* multiplies all of it.
    *by_type*: objects are judged by their types, too.
    """

    by: str = SECONDS
    least: float = 0.0
    least_of: Mapping[str, float] = field(default_factory=dict)
    allowed: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    allowance: float = 1.0
    by_type: bool = False


@dataclass(frozen=True)
class Judged:
    """One quantity: its median in the first and last fifth that is judged, its slope and verdict.

    *is_flat* is None where there is too little to judge by.
    """

    name: str
    samples: int
    first: float
    last: float
    grown: float
    allowed: float
    is_flat: bool | None


def judge(name: str, points: Points, scale: Scale = Scale()) -> Judged:
    """Judge one quantity; the points are in the order of time."""
    end = points[-1][0]
    least = max(WARM_UP_SHARE * end, scale.least_of.get(name, scale.least))
    judged = [point for point in points if point[0] >= least]
    if len(judged) < LEAST_SAMPLES:
        return Judged(name, len(judged), points[0][1], points[-1][1], 0.0, 0.0, None)
    values = [value for _at, value in judged]
    fifth = max(1, len(values) // 5)
    first, last = statistics.median(values[:fifth]), statistics.median(values[-fifth:])
    steepness = slope(judged)
    grown = steepness * (judged[-1][0] - judged[0][0])
    noise = spread([value - steepness * at for at, value in judged])
    limits = {**ALLOWED, **scale.allowed}
    absolute, share = limits.get(name) or limits[name.split()[0]]
    allowed = max(absolute, share * statistics.median(values), NOISE * noise) * scale.allowance
    return Judged(name, len(values), first, last, grown, allowed, grown <= allowed)


def slope(points: Points) -> float:
    """The median of the slopes between all pairs of points (Theil and Sen)."""
    slopes = [
        (later - earlier) / (end - begin)
        for (begin, earlier), (end, later) in itertools.combinations(points, 2)
        if end > begin
    ]
    return statistics.median(slopes) if slopes else 0.0


def spread(values: Sequence[float]) -> float:
    """How wide the middle half of *values* is."""
    first, _median, third = statistics.quantiles(values, n=4)
    return third - first


def judge_all(
    samples: Sequence[tuple[float, Mapping[str, float]]], scale: Scale = Scale()
) -> list[Judged]:
    """Judge every quantity that the samples have; those that appear late count from then on."""
    names = dict.fromkeys(name for _at, sample in samples for name in sample)
    return [
        judge(name, [(at, each[name]) for at, each in samples if name in each], scale)
        for name in names
    ]


def growing_types(
    samples: Sequence[tuple[float, Mapping[str, int]]], scale: Scale = Scale()
) -> list[Judged]:
    """Judge the number of objects of each type; those that grow, if *scale* wants to know them.

    A type that a sample does not tell of has no object, or so few that they do not matter.
    """
    if not scale.by_type:
        return []
    names = dict.fromkeys(name for _at, types in samples for name in types)
    judged = (
        judge(f"objects {name}", [(at, float(types.get(name, 0))) for at, types in samples], scale)
        for name in names
    )
    return [each for each in judged if each.is_flat is False]


def report(
    title: str,
    done: Mapping[str, Any],
    kept: Sequence[tuple[str, look.Kept]],
    scale: Scale = Scale(),
) -> tuple[str, bool]:
    """The tables of a run and its verdict in the last line; and whether anything grows.

    *done* is what was done, *kept* the samples of each process.
    """
    facts = ", ".join(f"{name} {value:,}" for name, value in done.items())
    lines = [machine.sentence(machine.notes()), "", f"{title}: {facts}.", ""]
    every: list[Judged] = []
    for name, looks in kept:
        samples = list(looks)
        if not samples:
            continue
        judged = judge_all([(each[scale.by], each["sample"]) for each in samples], scale)
        judged += growing_types([(each[scale.by], each["types"]) for each in samples], scale)
        lines.append(results.table((name, *HEAD), [_cells(each) for each in judged]))
        if any(each.is_flat is False for each in judged):
            more = look.grown_types(samples)
            lines.append(f"more objects than half-way: {more}\n")
        every += judged
    growing = sorted(each.name for each in every if each.is_flat is False)
    found = f"these grow: {', '.join(growing)}" if growing else "nothing grows"
    if all(each.is_flat is None for each in every):
        found = "too short to judge by"
    lines.append(f"{done.get('decisions', 0):,} decisions; {found}")
    return "\n".join(lines), bool(growing)


def _cells(judged: Judged) -> tuple[str, ...]:
    numbers = (judged.first, judged.last, judged.grown, judged.allowed)
    shown = (f"{number:,.1f}" for number in numbers)
    return (judged.name, str(judged.samples), *shown, WORDS[judged.is_flat])
