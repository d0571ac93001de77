"""Totals for one request whose weighers treat few hosts otherwise than all others.

What the other hosts get from such a weigher is the same for all of them, so their order is that of
what stands but for rounding.  Hosts that may be among the best are added up exactly: these, and the
few that are treated otherwise.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scheduler.hosts.candidates import Candidates, Scope
from scheduler.semantics import Bounds
from scheduler.standing.apart import Left, singled_out
from scheduler.standing.classes import Standing
from scheduler.standing.part import Part
from scheduler.standing.per_row import Numbers
from scheduler.standing.scores import NO_CANDIDATE
from scheduler.standing.verdicts import PASSES
from scheduler.weights.weighing import Valued, normalise

#: What rounding may change of a total, per multiplier: the same numbers in another order.
_ROUNDING = 1e-13
#: The totals of so many rows are added up in plain Python; NumPy costs more for so few.
_FEW = 12


_Term = tuple[Callable[[int], float], Callable[[int], float], float, float, float]
"""What gives the raw value and the multiplier of a row, the bounds, and how far they are apart."""


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """The raw values of one weigher: of few rows, in order, and the one of all others."""

    #: The weigher's place among all weighers.
    place: int
    name: str
    rows: np.ndarray
    raws: np.ndarray
    of_others: float
    multiplier: float
    bounds: Bounds

    def factor(self, row: int) -> float:
        """The multiplier of a row."""
        del row
        return self.multiplier

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        return self.rows.nbytes + self.raws.nbytes

    def of(self, rows: np.ndarray) -> np.ndarray:
        """The raw values of *rows*."""
        values = np.full(len(rows), self.of_others)
        if len(self.rows):
            at = np.minimum(self.rows.searchsorted(rows), len(self.rows) - 1)
            is_own = self.rows[at] == rows
            values[is_own] = self.raws[at[is_own]]
        return values

    @property
    def more_than_others(self) -> np.ndarray:
        """By how much what the rows get is more than what the others get, but for rounding."""
        numbers = np.append(self.raws, self.of_others)
        weights: np.ndarray = normalise(numbers, *self.bounds) * self.multiplier
        return weights[:-1] - weights[-1]

    def by_row(self) -> Callable[[int], float]:
        """Looks up the raw value of a row."""
        own = dict(zip(self.rows.tolist(), self.raws.tolist(), strict=True))
        return lambda row: own.get(row, self.of_others)

    def valued(self, rows: np.ndarray) -> Valued:
        """What the weigher's part of the totals of *rows* was made of."""
        return Valued(self.name, self.of(rows), self.multiplier, self.bounds)


class OwnTotals:
    """The totals of the hosts that are left, for as long as what stands stays as it is."""

    def __init__(self, standing: Standing, left: Left, asked: Sequence[Asked]) -> None:
        self._scores = standing.scores
        self._passing = standing.verdicts.passing
        self._gone = sorted(left.gone)
        self._base = standing.totals()
        self._bounds = list(standing.scores.bounds or ())
        self.asked = {each.place: each for each in asked}

    @property
    def bounds(self) -> list[Bounds]:
        """What the raw values that stand are put between."""
        pairs = zip(self._scores.parts, self._bounds, strict=True)
        return [bounds for part, bounds in pairs if part.is_kept]

    def of(self, rows: np.ndarray) -> np.ndarray:
        """The totals of *rows*, which are left."""
        if len(rows) <= _FEW:
            return np.array([self._of_one(row) for row in rows.tolist()], dtype=np.float64)
        totals = np.zeros(len(rows))
        for place, (part, bounds) in enumerate(zip(self._scores.parts, self._bounds, strict=True)):
            own = self.asked.get(place)
            if own is None:
                part.add_to(totals, rows, bounds)
            elif own.bounds[0] != own.bounds[1]:
                totals += normalise(own.of(rows), *own.bounds) * own.multiplier
        return totals

    def _of_one(self, row: int) -> float:
        total = 0.0
        for raw_of, factor_of, low, high, span in self._terms:
            total += (min(max(raw_of(row), low), high) - low) / span * factor_of(row)
        return total

    @functools.cached_property
    def _terms(self) -> list[_Term]:
        terms: list[_Term] = []
        for place, (part, bounds) in enumerate(zip(self._scores.parts, self._bounds, strict=True)):
            own = self.asked.get(place)
            low, high = bounds if own is None else own.bounds
            if low == high:
                continue
            if own is None:
                terms.append((part.raw.of, part.multiplier.of, low, high, high - low))
            else:
                terms.append((own.by_row(), own.factor, low, high, high - low))
        return terms

    def all(self) -> np.ndarray:
        """The total of every row; ``NO_CANDIDATE`` where it is not left."""
        if not self.asked:
            return self._standing() if self._gone else self._base
        totals = np.full(len(self._passing), NO_CANDIDATE)
        rows = np.flatnonzero(self._standing() > NO_CANDIDATE)
        totals[rows] = self.of(rows)
        return totals

    def head(self, count: int) -> tuple[np.ndarray, np.ndarray, int]:
        """Rows, in order, among which the *count* best are, their totals, and *count*."""
        few, of_few = self._about()
        rows = self._near_best(few, of_few) if count == 1 else None
        if rows is None:
            totals = self._standing()
            totals[few] = of_few
            least = np.partition(totals, -count)[-count] - self._reserve
            is_near = totals >= least if math.isfinite(least) else totals > NO_CANDIDATE
            rows = np.flatnonzero(is_near)
        return rows, self.of(rows), count

    def _near_best(self, few: np.ndarray, of_few: np.ndarray) -> np.ndarray | None:
        """The rows that may be the best; None if that takes more than a look at all."""
        best = int(self._base.argmax())
        if best in few or best in self._gone:
            return None
        of_best = self._base.item(best)
        least = of_few.max(initial=of_best) - self._reserve
        near = few[of_few >= least]
        if of_best < least:
            return near
        if not math.isfinite(least):
            return None
        is_near = self._base >= least
        is_near[near] = True
        is_near[self._gone] = False
        return np.flatnonzero(is_near)

    def _about(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows that a weigher was asked about, and what they have but for rounding.

        What all others get from these weighers is left out.
        """
        asked = list(self.asked.values())
        rows = (
            asked[0].rows if len(asked) == 1 else np.unique(np.concatenate([a.rows for a in asked]))
        )
        totals = self._base[rows]
        for each in asked:
            totals[rows.searchsorted(each.rows)] += each.more_than_others
        return rows, totals

    def _standing(self) -> np.ndarray:
        """What stands, without what is gone."""
        totals: np.ndarray = self._base.copy()
        totals[self._gone] = NO_CANDIDATE
        return totals

    @property
    def _reserve(self) -> float:
        """How much lower one of two totals may stand that are equal when they are added up."""
        of_asked = sum(abs(each.multiplier) for each in self.asked.values())
        return 4 * _ROUNDING * (of_asked + self._scores.most_weight)

    def numbers_of(self, rows: list[int]) -> tuple[list[str], list[Any], list[Any], list[Bounds]]:
        """What the totals of *rows* are made of: names, raw values, multipliers and bounds."""
        array = np.array(rows, dtype=np.int64)
        raws, multipliers = self._scores.few(array)
        names, bounds = list(self._scores.names), self.bounds
        several: list[Numbers] = list(multipliers)
        for place, each in self.asked.items():
            names.insert(place, each.name)
            raws.insert(place, each.of(array))
            several.insert(place, each.multiplier)
            bounds.insert(place, each.bounds)
        return names, raws, several, bounds


def own_totals(standing: Standing, left: Left, scope: Scope, request: Any) -> OwnTotals | None:
    """The totals of what is *left*, but not if that is few; None if all must be weighed anew."""
    scores, verdicts = standing.scores, standing.verdicts
    if left.end < 2 or not scores.hold_without(left.gone, verdicts.passing):
        return None
    asked = []
    first = len(verdicts.numbers.filters)
    for place, part in enumerate(scores.parts):
        if not part.is_kept:
            known = singled_out(standing.apart[first + place], scope, request)
            own = known and _ask(part, place, *known, standing, left, scope, request)
            if not own:
                return None
            asked.append(own)
    return OwnTotals(standing, left, asked)


def _ask(
    part: Part,
    place: int,
    rows: Iterable[int],
    other: int,
    standing: Standing,
    left: Left,
    scope: Scope,
    request: Any,
) -> Asked | None:
    """Ask a weigher about *rows* and one *other*; None if it has more than one multiplier."""
    of_row, weigher = standing.verdicts.of_row, part.weigher
    few = [row for row in rows if of_row.item(row) == PASSES and row not in left.gone]
    multiplier = weigher.multipliers(Candidates(scope, scope.table.order))
    hosts = Candidates(scope, np.array([*few, other], dtype=np.int64))
    raws = np.asarray(weigher.raw(hosts, request), dtype=np.float64)
    if isinstance(multiplier, np.ndarray) or not np.isfinite([*raws, multiplier]).all():
        return None
    weighed = raws.tolist() if left.end > len(few) else raws[:-1].tolist()
    bounds = standing.scores.semantics.bounds(weigher, min(weighed), max(weighed))
    array = np.array(few, dtype=np.int64)
    return Asked(place, weigher.name, array, raws[:-1], raws.item(-1), multiplier, bounds)
