"""Adding up the weighers: named components, one total, one order.

Reference page scheduling, sections 7.1 and 7.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scheduler import semantics
from scheduler.hosts.candidates import Candidates
from scheduler.semantics import Semantics
from scheduler.weights.base import BaseHostWeigher


@dataclass(slots=True)
class Valued:
    """One weigher's numbers for a few hosts, in their order, and the bounds they are put between.

    Without bounds nothing was weighed.  A single number stands for that of every host.
    """

    name: str
    raw: np.ndarray | float
    multiplier: np.ndarray | float
    bounds: tuple[float, float] | None

    def some(self, places: np.ndarray) -> Valued:
        """Those at *places* alone."""
        return Valued(
            self.name, _some(self.raw, places), _some(self.multiplier, places), self.bounds
        )


def _some(numbers: np.ndarray | float, places: np.ndarray) -> np.ndarray | float:
    """The numbers at *places*; an array of one is that of every host."""
    if not isinstance(numbers, np.ndarray):
        return numbers
    return numbers[places] if len(numbers) > 1 else float(numbers[0])


@dataclass(frozen=True, slots=True)
class Component:
    """One weigher's part: raw, normalised and multiplied value per host, in candidate order."""

    name: str
    raw: np.ndarray
    normalised: np.ndarray
    weighted: np.ndarray
    valued: Valued


@dataclass(frozen=True, slots=True)
class Weighed:
    """Candidates best first, their totals in that order, and the components behind them.

    ``positions[i]`` is the place that host number *i* of this order had among the candidates
    that were weighed, which is how the components are indexed.
    """

    hosts: Candidates
    totals: np.ndarray
    positions: np.ndarray
    components: tuple[Component, ...]

    @property
    def totals_as_given(self) -> np.ndarray:
        """The totals in the order of the candidates that were weighed."""
        totals = np.empty_like(self.totals)
        totals[self.positions] = self.totals
        return totals


def normalise(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Map *values* to 0…1 between the bounds; those outside count as the bound they exceed."""
    if high == low:
        return np.zeros(len(values))
    return (np.clip(values.astype(np.float64), low, high) - low) / (high - low)


def bounds_of(weighers: Sequence[BaseHostWeigher]) -> list[tuple[float | None, float | None]]:
    """The bounds that *weighers* carry, to be given back to them by ``restore_bounds``."""
    return [(each.minval, each.maxval) for each in weighers]


def restore_bounds(
    weighers: Sequence[BaseHostWeigher], bounds: list[tuple[float | None, float | None]]
) -> None:
    """Make *weighers* forget what they have seen since *bounds* were theirs."""
    for each, (low, high) in zip(weighers, bounds, strict=True):
        if (each.minval, each.maxval) != (low, high):
            each.minval, each.maxval = low, high


def weigh(
    weighers: Sequence[BaseHostWeigher],
    hosts: Candidates,
    request: Any,
    chosen: Semantics = semantics.CURRENT,
) -> Weighed:
    """Weigh *hosts*; fewer than two are not weighed and have weight 0.0.

    Equal totals keep the order of *hosts*.  The *chosen* semantics say what the bounds are.
    """
    totals = np.zeros(len(hosts))
    components = []
    if len(hosts) > 1:
        for each in weighers:
            raw = each.raw(hosts, request)
            bounds = chosen.bounds(each, float(raw.min()), float(raw.max()))
            normalised, multiplier = normalise(raw, *bounds), each.multipliers(hosts)
            weighted = normalised * multiplier
            totals = totals + weighted
            valued = Valued(each.name, raw, multiplier, bounds)
            components.append(Component(each.name, raw, normalised, weighted, valued))
    positions = np.argsort(-totals, kind="stable")
    return Weighed(hosts.take(positions), totals[positions], positions, tuple(components))
