"""One number per row of the host table."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

Numbers = np.ndarray | float
"""A number for each of some rows, or one for all of them."""


class PerRow:
    """One number per row; a single one as long as it is the same for all that were asked."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self.values: np.ndarray | float | None = None

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        return self.values.nbytes if isinstance(self.values, np.ndarray) else 0

    def take(self, other: PerRow) -> None:
        """Set all numbers to those of *other*."""
        values = other.values
        self.values = values.copy() if isinstance(values, np.ndarray) else values

    def put(self, rows: np.ndarray, given: np.ndarray | float) -> None:
        """Set the numbers of *rows*, of which there is at least one; ValueError if not finite."""
        if isinstance(self.values, np.ndarray) and _are_integers(given):
            self.values[rows] = given
            return
        values = np.asarray(given, dtype=np.float64)
        if not np.isfinite(values).all():
            raise ValueError("a raw value or multiplier is not finite")
        if not isinstance(self.values, np.ndarray):
            first = float(values.flat[0])
            if self.values in (None, first) and (values == first).all():
                self.values = first
                return
            self.values = np.full(self._capacity, 0.0 if self.values is None else self.values)
        self.values[rows] = values

    def put_few(self, rows: np.ndarray, given: np.ndarray | float) -> list[float]:
        """The same of a few *rows*; gives their numbers."""
        if isinstance(self.values, np.ndarray) and isinstance(given, np.ndarray):
            own: list[float] = given.tolist()
            if math.isfinite(sum(own)):  # cheaper than arrays: they are few
                self.values[rows] = given
                return own
        self.put(rows, given)
        return self.listed(rows.tolist())

    def of(self, row: int) -> float:
        """The number of one row."""
        values = self.values
        return values.item(row) if isinstance(values, np.ndarray) else values or 0.0

    def listed(self, rows: Sequence[int]) -> list[float]:
        """The numbers of *rows*, which are few."""
        values = self.values
        if not isinstance(values, np.ndarray):
            return [values or 0.0] * len(rows)
        return list(map(values.item, rows))

    def is_one(self, rows: np.ndarray) -> bool:
        """Whether all *rows* have the same number."""
        values = self.values
        return not isinstance(values, np.ndarray) or bool((values[rows] == values[rows[0]]).all())

    @property
    def largest(self) -> float:
        """The largest of all numbers, without its sign."""
        values = self.values
        return float(np.abs(values).max()) if isinstance(values, np.ndarray) else abs(values or 0.0)

    @property
    def is_plain(self) -> bool:
        """Whether one number stands for all."""
        return not isinstance(self.values, np.ndarray)

    def few(self, rows: np.ndarray) -> Numbers:
        """The numbers of *rows*, or the one that all have."""
        return self.values[rows] if isinstance(self.values, np.ndarray) else self.values or 0.0

    def whole(self) -> Numbers:
        """A copy of all numbers."""
        return self.values.copy() if isinstance(self.values, np.ndarray) else self.values or 0.0

    def some(self, rows: np.ndarray) -> np.ndarray:
        """The numbers of *rows*, or one for all of them."""
        return self.get(rows if isinstance(self.values, np.ndarray) else rows[:1])

    def get(self, rows: np.ndarray) -> np.ndarray:
        """The numbers of *rows*."""
        if isinstance(self.values, np.ndarray):
            found: np.ndarray = self.values[rows]
            return found
        return np.full(len(rows), self.values)


def _are_integers(given: np.ndarray | float) -> bool:
    """Whether they are whole numbers in an array, all of them finite."""
    return isinstance(given, np.ndarray) and given.dtype.kind in "iu"
