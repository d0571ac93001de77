"""The best hosts of a decision and what their weights were made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scheduler.weights.weighing import Valued, normalise

Pair = tuple[str, str | None]
"""Host and node."""


@dataclass(slots=True)
class Top:
    """The hosts first in order, the pick before all, and each weigher's numbers for them.

    Without bounds nothing was weighed: there was one host, or none of the weighers.
    """

    pairs: Sequence[Pair]
    totals: Sequence[float]
    names: Sequence[str]
    raws: Sequence[np.ndarray | float]
    multipliers: Sequence[np.ndarray | float]
    bounds: Sequence[tuple[float, float] | None] | None

    @property
    def valued(self) -> list[Valued]:
        """The same per weigher."""
        bounds = self.bounds or [None] * len(self.names)
        parts = zip(self.names, self.raws, self.multipliers, bounds, strict=True)
        return [Valued(*each) for each in parts]

    def rows(self) -> list[dict[str, Any]]:
        """Host, node, total and, per weigher, raw, normalised, multiplier and weighted value."""
        valued = self.valued
        return [
            {
                "host": host,
                "node": node,
                "total": float(self.totals[place]),
                "weighers": [part_of(each, place) for each in valued if each.bounds],
            }
            for place, (host, node) in enumerate(self.pairs)
        ]


def part_of(valued: Valued, place: int) -> dict[str, Any]:
    """One weigher's part of the total of the host at *place*."""
    raw, multiplier = _at(valued.raw, place), _at(valued.multiplier, place)
    low, high = valued.bounds or (0.0, 0.0)
    normalised = float(normalise(np.array([raw]), low, high)[0])
    return {
        "name": valued.name,
        "raw": raw,
        "normalised": normalised,
        "multiplier": multiplier,
        "weighted": normalised * multiplier,
    }


def _at(numbers: np.ndarray | float, place: int) -> float:
    if not isinstance(numbers, np.ndarray):
        return float(numbers)
    return float(numbers[place] if len(numbers) > 1 else numbers[0])
