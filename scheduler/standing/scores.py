"""What the weighers made of every host, added up as ``weights.weighing`` adds it up.

Totals are bit for bit those of weighing from scratch: every step on a number is the same step in
the same order, whether it is taken for one row or for all.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scheduler.hosts.candidates import Candidates, OneCandidate, Scope
from scheduler.semantics import Bounds, Semantics
from scheduler.standing.part import OF_MULTIPLIERS, Part
from scheduler.standing.per_row import Numbers, PerRow
from scheduler.standing.verdicts import PICKED
from scheduler.weights.base import BaseHostWeigher
from scheduler.weights.weighing import Valued, bounds_of

#: The total of a row that is no candidate.
NO_CANDIDATE = -np.inf
#: The totals of so many rows are added up in plain Python; NumPy costs more for so few.
_FEW = 12
#: When more than this part of all rows has changed, what weighers made of all is worked out anew.
_PART = 8
#: So many rows are worth remembering for guesses of what will be picked.
_MANY = 64

_Term = tuple[PerRow, PerRow, float, float, float]
"""Raw values and multipliers of a weigher that counts, its bounds, and how far they are apart."""


class Scores:
    """The raw values, multipliers and totals of every row that passes."""

    def __init__(
        self,
        weighers: Sequence[tuple[BaseHostWeigher, int | None]],
        chosen: Semantics,
        capacity: int = 0,
    ) -> None:
        self._given = weighers
        self._weighers = [weigher for weigher, _reads in weighers]
        self.semantics = chosen
        self.parts = [Part(weigher, reads, capacity) for weigher, reads in weighers]
        self.are_complete = all(part.is_kept for part in self.parts)
        self._kept = [part for part in self.parts if part.is_kept]
        #: Whether the multipliers of those whose raw values picks change follow from aggregates.
        self.multipliers_stand = all(
            part.multipliers_stand or not part.is_picked for part in self._kept
        )
        #: The weighers whose raw values are kept.
        self.names = [part.weigher.name for part in self._kept]
        self._picked = [(n, part.raw) for n, part in enumerate(self._kept) if part.is_picked]
        #: The multipliers, where each is the same for all rows and nothing was asked since.
        self._plain_multipliers: list[Numbers] | None = None
        #: Raw values that are the same for all rows, and the others by place, once a pick can
        #: change no value of the former.
        self._raws: tuple[list[Numbers], list[tuple[int, np.ndarray]]] | None = None
        #: The row that was looked at last, and its raw values, as long as nothing changes.
        self._latest: tuple[int, tuple[Numbers, ...]] | None = None
        self._totals = np.full(capacity, NO_CANDIDATE)
        #: What the totals were last normalised with; None if fewer than two hosts were left.
        self.bounds: list[Bounds] | None = None
        #: What the weighers carried then.
        self._carried: list[Any] = []
        #: Rows that have changed since.
        self._unsettled: set[int] = set()
        #: Rows that have changed since all were last added up.
        self._changed: set[int] = set()
        #: What adds to totals between the bounds that come first.
        self._terms: tuple[list[Bounds], list[_Term]] = ([], [])
        #: Where a weigher must be asked every time: what the totals of many rows last were.
        self._last: tuple[np.ndarray | None, np.ndarray] = (None, self._totals[:0])

    def anew(self, capacity: int) -> Scores:
        """Scores by the same weighers, of which nothing is known yet."""
        return Scores(self._given, self.semantics, capacity)

    def copy(self) -> Scores:
        """The same, to be changed apart from this one."""
        twin = self.anew(len(self._totals))
        for part, other in zip(self.parts, twin.parts, strict=True):
            other.raw.take(part.raw)
            other.multiplier.take(part.multiplier)
            other.witnesses, other.is_moved = part.witnesses, part.is_moved
        twin._totals = self._totals.copy()
        twin.bounds, twin._carried = self.bounds, self._carried
        twin._unsettled = set(self._unsettled)
        return twin

    def totals_within(self, rows: np.ndarray, bounds: list[Bounds] | None) -> np.ndarray:
        """The totals of *rows* if *bounds* were in force; 0.0 if none were."""
        totals = np.zeros(len(rows))
        for part, of_part in zip(self.parts, bounds or (), strict=bounds is not None):
            part.add_to(totals, rows, of_part)
        return totals

    def are_alike(self, rows: np.ndarray) -> bool:
        """Whether all *rows* have the same values, and so the same totals with any bounds."""
        return all(part.raw.is_one(rows) and part.multiplier.is_one(rows) for part in self.parts)

    @property
    def last_totals(self) -> np.ndarray:
        """The total of every row as it last was; not a copy."""
        return self._totals

    def best(self, count: int) -> list[int]:
        """The *count* rows with the highest totals as they last were, in any order."""
        rows, totals = self._last
        if rows is None and self.bounds is not None:
            totals = self._totals
        count = min(count, len(totals) - 1)
        if count < 1:
            return []
        best = np.argpartition(totals, -count)[-count:]
        best = best[totals[best] > NO_CANDIDATE]
        found: list[int] = (best if rows is None else rows[best]).tolist()
        return found

    @property
    def num_kept(self) -> int:
        """How many weighers' raw values are kept."""
        return len(self._kept)

    def raw_of(self, hosts: Candidates, request: Any) -> np.ndarray:
        """The raw values of *hosts*, a column per weigher; as they were if no pick changes them."""
        raws = np.empty((len(hosts), len(self._kept)))
        for number, part in enumerate(self._kept):
            own = part.weigher.raw(hosts, request) if part.is_picked else part.raw.few(hosts.rows)
            raws[:, number] = own
        return raws

    def raw_alone(self, host: OneCandidate, row: int, request: Any) -> list[float]:
        """The same of one host, which is *row*."""
        raws = [part.raw.of(row) for part in self._kept]
        for number, _raw in self._picked:
            raws[number] = self._kept[number].raw_alone(host, request)
        return raws

    def put(self, row: int, raws: Sequence[float] | None) -> None:
        """Set the raw values of one row that was weighed; None if it is no longer."""
        self._latest = None
        for number, part in enumerate(self._kept):
            if raws is None or part.is_picked:
                part.put(row, None if raws is None else raws[number])
        self._unsettled.add(row)

    def totals_of(self, hosts: Candidates, request: Any) -> tuple[np.ndarray, list[Valued]]:
        """The totals of *hosts*, some of those that pass, if they alone are weighed; and of what.

        The numbers that make up the totals are in the order of *hosts*.
        """
        totals = np.zeros(len(hosts))
        valued = []
        if len(hosts) > 1:
            for part in self.parts:
                valued.append(part.weigh(totals, hosts, request, self.semantics))
        self._last = (hosts.rows, totals) if len(hosts) > _MANY else (None, totals[:0])
        return totals, valued

    def few(self, rows: np.ndarray) -> tuple[list[Numbers], list[Numbers]]:
        """Raw values and multipliers of *rows*, per weigher whose raw values are kept."""
        return [part.raw.few(rows) for part in self._kept], self._multipliers_of(rows)

    def of_one(self, row: int) -> tuple[Sequence[Numbers], list[Numbers]]:
        """The same of one row, as plain numbers."""
        multipliers = self._plain_multipliers
        if multipliers is None:
            multipliers = self._multipliers_of(np.array([row]))
        return self.raws_of_one(row), multipliers

    def raws_of_one(self, row: int) -> tuple[Numbers, ...]:
        """The raw values of one row, per weigher whose raw values are kept."""
        if self._latest is not None and self._latest[0] == row:
            return self._latest[1]
        same, others = self._raws or self._told_apart()
        found = same.copy()
        for number, values in others:
            found[number] = values.item(row)
        raws = tuple(found)  # of which the garbage collector soon makes no more work
        self._latest = row, raws
        return raws

    def _told_apart(self) -> tuple[list[Numbers], list[tuple[int, np.ndarray]]]:
        values = [part.raw.values for part in self._kept]
        arrays = [(n, each) for n, each in enumerate(values) if isinstance(each, np.ndarray)]
        same: list[Numbers] = [0.0 if each is None else each for each in values]
        if not any(raw.is_plain for _number, raw in self._picked):
            self._raws = same, arrays
        return same, arrays

    def _multipliers_of(self, rows: np.ndarray) -> list[Numbers]:
        if self._plain_multipliers is None:
            several = [part.multiplier for part in self._kept]
            if not all(each.is_plain for each in several):
                return [each.few(rows) for each in several]
            self._plain_multipliers = [each.few(rows) for each in several]  # all share it
        return self._plain_multipliers

    def picked_few(self, rows: np.ndarray) -> list[Numbers | None]:
        """The raw values of *rows* that picks change, per weigher; None of others."""
        return [part.raw.few(rows) if part.is_picked else None for part in self._kept]

    def whole(self) -> tuple[list[Numbers], list[Numbers]]:
        """Copies of all of them."""
        parts = self._kept
        return [part.raw.whole() for part in parts], [part.multiplier.whole() for part in parts]

    def take_over(self, raws: Mapping[int, Sequence[float] | None]) -> None:
        """Set the raw values of some rows that were weighed; None of those that are no longer."""
        self._latest = None
        left = {row: values for row, values in raws.items() if values is not None}
        rows = np.array(list(left), dtype=np.int64)
        values = np.array(list(left.values()), dtype=np.float64).reshape(len(left), self.num_kept)
        for number, part in enumerate(self._kept):
            part.witnesses, part.is_moved = None, True
            if part.is_picked and len(rows):
                part.raw.put(rows, values[:, number])
        self._unsettled.update(raws)

    @property
    def reads(self) -> int:
        """Bits of all columns that count."""
        return functools.reduce(operator.or_, (part.reads for part in self._kept), 0)

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        of_parts = sum(part.nbytes for part in self.parts)
        return self._totals.nbytes + 2 * self._last[1].nbytes + of_parts

    def weigh_all(self, scope: Scope, request: Any, rows: np.ndarray) -> None:
        """Ask about the *rows*, which are all that pass."""
        if len(rows):
            hosts = Candidates(scope, rows)
            self._plain_multipliers = self._raws = self._latest = None
            for part in self._kept:
                part.ask(hosts, request)

    def weigh_changed(
        self,
        scope: Scope,
        request: Any,
        rows: np.ndarray,
        changed: int,
        masks: tuple[np.ndarray, np.ndarray] | None,
    ) -> None:
        """Ask again about *rows*, whose columns *changed* (bits, those of all rows together).

        The *masks* say which of them passed the filters before and which do now; None: all.
        """
        new = gone = False
        if masks is not None:
            passed, passes = masks
            new, gone = bool((passes & ~passed).any()), bool((passed & ~passes).any())
        hosts = Candidates(scope, rows if masks is None else rows[passes])
        touched = frozenset(rows.tolist())
        are_known = not (new or changed & OF_MULTIPLIERS)
        self._latest = None
        if new or changed & ~PICKED:
            self._raws = None
        for part in self._kept:
            concerned = changed & part.reads
            if concerned or new or gone:
                part.forget_witnesses(touched)
            if (concerned or new) and len(hosts):
                if not (are_known and part.multipliers_stand):
                    self._plain_multipliers = None
                part.ask_again(hosts, request, are_known=are_known)
        self._unsettled |= touched

    def hold_within(self, left: np.ndarray, passing: np.ndarray) -> bool:
        """Whether the totals of the rows *passing* are also those of the ones *left* of them.

        They are if those hold the lowest and the highest raw values, and nothing is to be asked.
        """
        if not self.are_complete:
            return False
        for part in self.parts:
            part.extremes(passing)
            if part.witnesses is not None and not left[list(part.witnesses)].all():
                return False
        return True

    def hold_without(self, gone: set[int], passing: np.ndarray) -> bool:
        """Whether the totals of the rows *passing* are also theirs if some of them are *gone*.

        Of weighers that must be asked every time nothing is said.
        """
        for part in self._kept if gone else ():
            part.extremes(passing)
            if part.witnesses is not None and not gone.isdisjoint(part.witnesses):
                return False
        return True

    @property
    def most_weight(self) -> float:
        """The most that all weighers together whose raw values are kept can add to a total."""
        return sum(part.multiplier.largest for part in self._kept)

    def totals(self, passing: np.ndarray, num_passing: int) -> np.ndarray:
        """The total of every row; ``NO_CANDIDATE`` outside of the mask *passing*.  Not a copy.

        Weighers that must be asked every time add nothing.  Fewer than two hosts are not weighed
        and have 0.0.
        """
        if num_passing < 2:
            self.bounds = None
            self._totals[:] = np.where(passing, 0.0, NO_CANDIDATE)
            return self._totals
        bounds = self._bounds(passing)
        self._changed |= self._unsettled
        if bounds != self.bounds:
            self._add_up_all(passing, bounds)
        elif len(self._unsettled) <= _FEW:
            self._add_up_few(self._unsettled, passing, bounds)
        else:
            self._add_up(np.array(list(self._unsettled)), passing, bounds)
        self.bounds = bounds
        self._unsettled.clear()
        return self._totals

    def _bounds(self, passing: np.ndarray) -> list[Bounds]:
        """What the semantics make of the lowest and highest values, asked where they moved."""
        known = self.bounds
        if known is None or bounds_of(self._weighers) != self._carried:
            bounds = [self._bounds_of(part, passing) for part in self.parts]
        elif not any([part.is_moved for part in self.parts]):  # a list: they are few
            return known
        else:
            bounds = [
                self._bounds_of(part, passing) if part.is_moved else before
                for part, before in zip(self.parts, known, strict=True)
            ]
        self._carried = bounds_of(self._weighers)
        return bounds

    def _bounds_of(self, part: Part, passing: np.ndarray) -> Bounds:
        part.is_moved = False
        if not part.is_kept:
            return 0.0, 0.0  # it adds nothing
        return self.semantics.bounds(part.weigher, *part.extremes(passing))

    def _add_up_few(self, rows: set[int], passing: np.ndarray, bounds: list[Bounds]) -> None:
        if self._terms[0] is not bounds:
            pairs = zip(self.parts, bounds, strict=True)
            counted = [(part, low, high) for part, (low, high) in pairs if low != high]
            self._terms = (
                bounds,
                [(part.raw, part.multiplier, low, high, high - low) for part, low, high in counted],
            )
        own = list(rows)
        totals = [0.0] * len(own)
        for raw, multiplier, low, high, span in self._terms[1]:
            factors = multiplier.listed(own)
            for place, value in enumerate(raw.listed(own)):
                if value < low:
                    value = low
                elif value > high:
                    value = high
                totals[place] += (value - low) / span * factors[place]
        for row, total in zip(own, totals, strict=True):
            self._totals[row] = total if passing[row] else NO_CANDIDATE

    def _add_up(self, rows: np.ndarray, passing: np.ndarray, bounds: list[Bounds]) -> None:
        totals = self.totals_within(rows, bounds)
        self._totals[rows] = np.where(passing[rows], totals, NO_CANDIDATE)

    def _add_up_all(self, passing: np.ndarray, bounds: list[Bounds]) -> None:
        self._totals[:] = 0.0
        if len(self._changed) > len(self._totals) // _PART:
            self._changed.clear()
            for part in self.parts:
                part.forget_weighted()
        changed = np.array(list(self._changed), dtype=np.int64)
        for part, of_part in zip(self.parts, bounds, strict=True):
            part.add_all_to(self._totals, changed, of_part, passing)
        self._changed.clear()
        np.copyto(self._totals, NO_CANDIDATE, where=~passing)
