"""Adding up the weighers: the one place where the weighing formula stands.

Reference page scheduling, sections 7.1 and 7.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scheduler.hosts.candidates import Candidates
from scheduler.semantics import Bounds, Semantics
from scheduler.weights.base import BaseHostWeigher


@dataclass(slots=True)
class Part:
    """One weigher's numbers for some hosts, in their order, and its bounds over all candidates.

    A multiplier that is a single number is that of every host.
    """

    name: str
    raw: np.ndarray
    multiplier: np.ndarray | float
    bounds: Bounds

    @property
    def normalised(self) -> np.ndarray:
        """The raw values between 0 and 1; those outside the bounds count as the bound."""
        return weighted(self.raw, self.bounds, 1.0, extremes(self.raw))

    @property
    def weighted(self) -> np.ndarray:
        """The weigher's share of the totals."""
        return weighted(self.raw, self.bounds, self.multiplier, extremes(self.raw))

    def at(self, places: np.ndarray) -> Part:
        """Copies of the numbers at *places*."""
        factor = self.multiplier
        if isinstance(factor, np.ndarray):
            factor = factor[places]
        return Part(self.name, self.raw[places], factor, self.bounds)


def weighted(
    raw: np.ndarray, bounds: Bounds, multiplier: np.ndarray | float, ends: Bounds
) -> np.ndarray:
    """Map *raw*, of which *ends* are least and most, to 0…1 between the bounds, and multiply.

    Values outside the bounds count as the bound they exceed; equal bounds give zeros.
    """
    low, high = bounds
    if low == high:
        return np.zeros(len(raw))
    if ends[0] < low or ends[1] > high:
        raw = np.clip(raw.astype(np.float64), low, high)
    found: np.ndarray = share(raw, low, high, multiplier)
    return found


def share(raw: Any, low: float, high: float, multiplier: Any) -> Any:
    """The weighing formula, for one number or for an array, between the bounds."""
    found = raw - low
    found /= high - low
    if isinstance(multiplier, np.ndarray) or multiplier != 1.0:
        found *= multiplier
    return found


def extremes(values: np.ndarray) -> tuple[float, float]:
    """Least and most of the *values*, of which there must be one."""
    if values.strides == (0,):  # one value for all hosts
        only = float(values.item(0))
        return only, only
    return float(values.min()), float(values.max())


def weigh(
    weighers: Sequence[BaseHostWeigher], hosts: Candidates, request: Any, semantics: Semantics
) -> tuple[np.ndarray, list[Part]]:
    """Total weight of each of *hosts*, and what the totals are made of.

    Fewer than two hosts are not weighed and have weight 0.0.  Parts are added in the configured
    order, in doubles; a weigher that is constant over the hosts adds nothing.
    """
    totals = np.zeros(len(hosts))
    parts: list[Part] = []
    if len(hosts) < 2:
        return totals, parts
    for each in weighers:
        raw = each.raw(hosts, request)
        ends, factor = extremes(raw), each.multipliers(hosts)
        bounds = semantics.bounds(each, *ends)
        parts.append(Part(each.name, raw, factor, bounds))
        if bounds[0] != bounds[1]:
            totals += weighted(raw, bounds, factor, ends)
    return totals, parts


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
