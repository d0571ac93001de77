"""Adding up the weighers: named components, one total, one order.

Bounds belong to this call: a declared bound of the weigher, else the lowest and highest value of
the hosts at hand; raw values outside a declared bound are raised or lowered to it.  Nothing is
remembered.  Reference page scheduling, sections 7.1 and 7.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scheduler.hosts.candidates import Candidates
from scheduler.weights.base import BaseHostWeigher


@dataclass(frozen=True, slots=True)
class Component:
    """One weigher's part: raw, normalised and multiplied value per host, in candidate order."""

    name: str
    raw: np.ndarray
    normalised: np.ndarray
    weighted: np.ndarray


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


def normalise(values: np.ndarray, low: float | None, high: float | None) -> np.ndarray:
    """Map *values* to 0…1 between the bounds; all zero where the bounds coincide."""
    values = values.astype(np.float64)
    if low is not None:
        values = np.maximum(values, low)
    if high is not None:
        values = np.minimum(values, high)
    lowest = float(low) if low is not None else float(values.min())
    highest = float(high) if high is not None else float(values.max())
    if highest == lowest:
        return np.zeros(len(values))
    return (values - lowest) / (highest - lowest)


def weigh(weighers: Sequence[BaseHostWeigher], hosts: Candidates, request: Any) -> Weighed:
    """Weigh *hosts*; fewer than two are not weighed and have weight 0.0.

    Equal totals keep the order of *hosts*.
    """
    totals = np.zeros(len(hosts))
    components = []
    if len(hosts) > 1:
        for each in weighers:
            raw = each.raw(hosts, request)
            normalised = normalise(raw, each.minval, each.maxval)
            weighted = normalised * each.multipliers(hosts)
            totals = totals + weighted
            components.append(Component(each.name, raw, normalised, weighted))
    positions = np.argsort(-totals, kind="stable")
    return Weighed(hosts.take(positions), totals[positions], positions, tuple(components))
