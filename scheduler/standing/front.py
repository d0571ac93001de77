"""The rows with the highest totals, kept apart from all others while picks change only these.

What the others can reach at most is carried along when bounds move, so that the best row is found,
and totals are added up anew, among few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from scheduler.semantics import Bounds, Semantics
from scheduler.standing.part import Part, add_weighted
from scheduler.standing.scores import NO_CANDIDATE, Scores
from scheduler.weights.weighing import normalise

#: How many rows are kept apart.
SIZE = 1024
#: What rounding may add to a total, for every time that totals are added up and per multiplier.
_ROUNDING = 1e-13


class _Column:
    """One weigher's raw values and multipliers of the rows, and the limits of those of others."""

    def __init__(self, part: Part, rows: np.ndarray, others: np.ndarray) -> None:
        self.weigher = part.weigher
        self.is_picked = part.is_picked
        self.raw = part.raw.get(rows)
        #: Whether the raw values of all rows are the same, whatever is picked.
        self.is_same = part.raw.is_plain and not part.is_picked
        self.multiplier: np.ndarray | float = part.multiplier.of(0)
        if isinstance(part.multiplier.values, np.ndarray):
            self.multiplier = part.multiplier.get(rows)
        #: The largest multiplier there ever was, without its sign.
        self.largest_factor = float(np.abs(self.multiplier).max())
        self.of_others: Bounds | None = None
        if len(others):
            self.of_others = _extremes(part.raw.some(others))
            self._factors = _extremes(part.multiplier.some(others))
        self.extremes = self.find_extremes()

    def find_extremes(self) -> Bounds:
        """Lowest and highest raw value of all rows, others included."""
        low, high = _extremes(self.raw)
        if self.of_others is not None:
            low, high = min(low, self.of_others[0]), max(high, self.of_others[1])
        return low, high

    def extremes_with(self, before: float, value: float) -> Bounds:
        """The extremes when *value* has come in place of the one *before*."""
        low, high = self.extremes
        if not low < before < high and not (self.of_others and before in self.of_others):
            is_still = value <= low if before == low else value >= high
            if low == high or not is_still:
                return self.find_extremes()
        return min(low, value), max(high, value)

    def num_staying(self, order: np.ndarray, values: np.ndarray) -> int:
        """How many rows at *order* can certainly get their *values* before an extreme moves."""
        low, high = self.extremes
        before, after = self.raw[order], values[order]
        is_moved = (after < low) | (after > high)
        for extreme in {low, high}.difference(self.of_others or ()):
            leaves = (before == extreme) & (after != extreme)
            if leaves.any():
                is_moved |= leaves.cumsum() >= np.count_nonzero(self.raw == extreme)
        return num_before(is_moved)

    def most_added(self, before: Bounds, after: Bounds) -> float:
        """The most that another row's part of the total grows by with other bounds."""
        if self.of_others is None:
            return 0.0
        low, high = self.of_others
        points = {low, high, *(each for each in (*before, *after) if low < each < high)}
        grown = [_normalised(each, *after) - _normalised(each, *before) for each in points]
        return max(factor * each for factor in self._factors for each in grown)

    def keep(self, mask: np.ndarray) -> None:
        """Forget the rows outside of *mask*."""
        self.raw = self.raw[mask]
        if isinstance(self.multiplier, np.ndarray):
            self.multiplier = self.multiplier[mask]


class Front:
    """The best of the *rows*, all that pass, by the totals of *scores*, which are up to date.

    Of the rows in the mask *as_in_table*, those that are equal stand in the order of the table.
    """

    def __init__(
        self, scores: Scores, rows: np.ndarray, semantics: Semantics, as_in_table: np.ndarray
    ) -> None:
        totals = scores.last_totals[rows]
        is_near = _is_near(totals)
        others = rows[~is_near]
        self.rows = rows[is_near]
        self.totals = totals[is_near]
        #: The position of the row that was last the first.
        self._found = 0
        self._num_others = len(others)
        self._most = float(totals[~is_near].max()) if len(others) else NO_CANDIDATE
        ties = rows[totals == self._most]
        self._ties_are_alike = bool(
            len(others) and as_in_table[ties].all() and scores.are_alike(ties)
        )
        #: How often the totals were added up.
        self.times = 1
        self._semantics = semantics
        self.columns = [_Column(part, self.rows, others) for part in scores.parts]
        self.picked = [(n, each) for n, each in enumerate(self.columns) if each.is_picked]
        self.bounds: list[Bounds] = list(scores.bounds or ())
        #: The raw values of rows that are no longer as in the scores; None: it does not pass.
        self.changed: dict[int, Sequence[float] | None] = {}
        self._settle_terms()

    @property
    def is_enough(self) -> bool:
        """Whether there are still hosts to be weighed against each other."""
        return len(self.rows) > 1

    def take(self, row: int, raws: Sequence[float] | None) -> None:
        """Set the raw values of one of the rows; None if it does not pass any more."""
        position = self._found
        if position >= len(self.rows) or self.rows.item(position) != row:
            position = int(self.rows.searchsorted(row))
        self.changed[row] = raws
        if raws is None:
            self._drop(position)
            return
        moved = {}
        for number, column in self.picked:
            before, value = column.raw.item(position), raws[number]
            if value != before:
                column.raw[position] = value
                extremes = column.extremes_with(before, value)
                if extremes != column.extremes:
                    moved[number] = extremes
        if not (moved and self._move(moved)):
            self.totals[position] = self._total(position, raws)

    def first(self) -> tuple[int, np.ndarray | None] | None:
        """The first row of the highest total and, if there are more, all of them.

        None if that may be one of the others.
        """
        position = self._found = int(self.totals.argmax())
        best = self.totals.item(position)
        row = self.rows.item(position)
        if self._num_others and best <= self._most + self._rounding:
            equals = self.rows[self.totals == best]
            return (row, equals) if self.are_before_others(best, equals) else None
        later = self.totals[position + 1 :]
        if not len(later) or later.max() < best:
            return row, None
        return row, self.rows[self.totals == best]

    def are_before_others(self, best: float, equals: np.ndarray) -> bool:
        """Whether the best rows come before all others that are equal to them: as they always did.

        They are the first of rows that have always been alike.
        """
        is_as_it_was = self.times == 1 and best == self._most and self._ties_are_alike
        return is_as_it_was and self.changed.keys().isdisjoint(equals.tolist())

    def num_sure(self, best: np.ndarray) -> int:
        """How many of these totals, the highest in order, are sure to be no other rows'."""
        if not self._num_others:
            return len(best)
        sure = num_before(best <= self._most + self._rounding)
        if sure:
            return sure
        equals = self.rows[self.totals == best[0]]
        return len(equals) if self.are_before_others(float(best[0]), equals) else 0

    def totals_with(self, raws: np.ndarray) -> np.ndarray:
        """The totals of all rows if these were their raw values; a column per weigher."""
        totals = np.zeros(len(self.rows))
        for number, low, high, span, factor in self._terms:
            values = np.minimum(np.maximum(raws[:, number], low), high)
            values -= low
            values /= span
            values *= factor
            totals += values
        return totals

    def take_many(self, at: np.ndarray, raws: np.ndarray, totals: np.ndarray) -> None:
        """Set the raw values and the totals of the rows *at* some positions; all still pass.

        Given are those of all rows.  No extreme value may change by that.
        """
        own = raws[at]
        for number, column in self.picked:
            column.raw[at] = own[:, number]
        self.totals[at] = totals[at]
        self.changed.update(zip(self.rows[at].tolist(), own.tolist(), strict=True))

    def __contains__(self, row: int) -> bool:
        position = int(self.rows.searchsorted(row))
        return position < len(self.rows) and self.rows.item(position) == row

    def best(self, count: int) -> list[int]:
        """The *count* rows with the highest totals, in any order."""
        if count >= len(self.rows):
            return self.rows.tolist()
        found: list[int] = self.rows[np.argpartition(self.totals, -count)[-count:]].tolist()
        return found

    def are_alike(self, rows: np.ndarray) -> bool:
        """Whether all *rows* have the same values, and so the same totals with any bounds."""
        at = self.rows.searchsorted(rows)
        if self._ties_are_alike and self.times == 1 and self.totals[at[0]] == self._most:
            return self.changed.keys().isdisjoint(rows.tolist())
        values = [column.raw for column in self.columns if not column.is_same]
        values += [m for column in self.columns if isinstance(m := column.multiplier, np.ndarray)]
        return all(bool((each[at] == each[at[0]]).all()) for each in values)

    def totals_within(self, rows: np.ndarray, bounds: list[Bounds] | None) -> np.ndarray:
        """The totals of *rows* if *bounds* were in force; 0.0 if none were."""
        at = self.rows.searchsorted(rows)
        totals = np.zeros(len(rows))
        for column, (low, high) in zip(self.columns, bounds or (), strict=bounds is not None):
            if low != high:
                multiplier = column.multiplier
                own = multiplier[at] if isinstance(multiplier, np.ndarray) else multiplier
                totals += normalise(column.raw[at], low, high) * own
        return totals

    def _drop(self, position: int) -> None:
        mask = np.ones(len(self.rows), dtype=np.bool_)
        mask[position] = False
        self.rows, self.totals = self.rows[mask], self.totals[mask]
        gone = [column.raw.item(position) for column in self.columns]
        for column in self.columns:
            column.keep(mask)
        if self.is_enough:
            moved = {
                number: column.find_extremes()
                for number, (column, value) in enumerate(zip(self.columns, gone, strict=True))
                if value in column.extremes
            }
            if not self._move(moved):
                self._settle_terms()  # which go by position

    def _move(self, moved: Mapping[int, Bounds]) -> bool:
        """Take over the extremes of some columns; whether all totals were added up anew."""
        bounds = list(self.bounds)
        for number, extremes in moved.items():
            column = self.columns[number]
            if extremes != column.extremes:
                column.extremes = extremes
                bounds[number] = self._semantics.bounds(column.weigher, *extremes)
        if bounds == self.bounds:
            return False
        is_felt = False
        for column, before, after in zip(self.columns, self.bounds, bounds, strict=True):
            if before != after and column.largest_factor:
                self._most += column.most_added(before, after)
                is_felt = True
        self.times += is_felt
        self.bounds = bounds
        self._settle_terms()
        if not is_felt:
            return False
        self.totals[:] = 0.0
        scratch = np.empty_like(self.totals)
        for column, of_column in zip(self.columns, bounds, strict=True):
            factor, extremes = column.multiplier, column.extremes
            add_weighted(self.totals, scratch, column.raw, factor, of_column, extremes)
        return True

    def _settle_terms(self) -> None:
        counted = [
            (number, low, high, high - low, column.multiplier)
            for number, (column, (low, high)) in enumerate(
                zip(self.columns, self.bounds, strict=True)
            )
            if low != high
        ]
        self._terms = counted
        largest = sum(self.columns[number].largest_factor for number, *_rest in counted)
        self._rounding = _ROUNDING * (1 + self.times) * largest

    def _total(self, position: int, raws: Sequence[float]) -> float:
        total = 0.0
        for number, low, high, span, factor in self._terms:
            value = raws[number]
            if value < low:
                value = low
            elif value > high:
                value = high
            own = factor if isinstance(factor, float) else factor.item(position)
            total += (value - low) / span * own
        return total


def _is_near(totals: np.ndarray) -> np.ndarray:
    """Mask of the ``SIZE`` highest *totals*; of those that are equal, the first."""
    if len(totals) <= SIZE:
        return np.ones(len(totals), dtype=np.bool_)
    last = np.partition(totals, -SIZE)[-SIZE]
    is_near: np.ndarray = totals > last
    equals = np.flatnonzero(totals == last)
    is_near[equals[: SIZE - np.count_nonzero(is_near)]] = True
    return is_near


def num_before(mask: np.ndarray) -> int:
    """How many are not set before the first one that is."""
    first = int(mask.argmax()) if len(mask) else 0
    return first if len(mask) and mask[first] else len(mask)


def _normalised(value: float, low: float, high: float) -> float:
    """The same as ``normalise`` of one value."""
    return 0.0 if low == high else (min(max(value, low), high) - low) / (high - low)


def _extremes(values: np.ndarray) -> Bounds:
    return values.item(values.argmin()), values.item(values.argmax())
