"""One weigher's part of the totals of all hosts."""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.hosts import columns
from scheduler.hosts.candidates import Candidates, OneCandidate
from scheduler.semantics import Bounds, Semantics
from scheduler.standing.per_row import Numbers, PerRow
from scheduler.standing.verdicts import PICKED, is_plain
from scheduler.weights.base import BaseHostWeigher, HostWeigher
from scheduler.weights.weighing import Valued, normalise

#: What multipliers follow from.
OF_MULTIPLIERS = columns.BITS["aggregates"]


class Part:
    """One weigher's part of the totals; *reads* is None if it must be asked every time."""

    def __init__(self, weigher: BaseHostWeigher, reads: int | None, capacity: int) -> None:
        self.weigher = weigher
        self.is_kept = reads is not None
        self.reads = (reads or 0) | OF_MULTIPLIERS
        #: Whether multipliers follow from the aggregates alone.
        self.multipliers_stand = type(weigher).multipliers is HostWeigher.multipliers
        #: Whether a pick changes the raw value of its host.
        self.is_picked = bool(self.reads & PICKED)
        self.is_plain = is_plain(weigher)
        self.raw = PerRow(capacity)
        self.multiplier = PerRow(capacity)
        #: Rows that hold the lowest and the highest raw value of those that pass, once looked up.
        self.witnesses: tuple[int, int] | None = None
        #: What it made of all rows when they were last added up, and between which bounds.
        self._weighted: tuple[Bounds, np.ndarray] | None = None
        #: Whether the lowest or highest value may be others than when bounds were last asked for.
        self.is_moved = True

    def ask(self, hosts: Candidates, request: Any) -> None:
        """Ask about *hosts*, which are all there are to weigh."""
        self.is_moved = True
        self.raw.put(hosts.rows, self.weigher.raw(hosts, request))
        self.multiplier.put(hosts.rows, self.weigher.multipliers(hosts))

    def ask_again(self, hosts: Candidates, request: Any, *, are_known: bool) -> None:
        """Ask about a few *hosts*; the multipliers of those that *are_known* may stand."""
        before = self.raw.values
        own = self.raw.put_few(hosts.rows, self.weigher.raw(hosts, request))
        if not (are_known and self.multipliers_stand):
            self.multiplier.put(hosts.rows, self.weigher.multipliers(hosts))
        values = self.raw.values
        if not isinstance(values, np.ndarray):
            self.is_moved = self.is_moved or before is None
        elif self.witnesses is None:
            self.is_moved = True
        else:
            self._notice(hosts.rows, own, values, self.witnesses)

    def raw_alone(self, host: OneCandidate, request: Any) -> float:
        """The raw value of one host."""
        if self.is_plain:
            return float(self.weigher.raw(host, request))
        return float(self.weigher.raw(Candidates(host.scope, host.rows), request)[0])

    def weigh(
        self, totals: np.ndarray, hosts: Candidates, request: Any, chosen: Semantics
    ) -> Valued:
        """Add the weigher's part to the *totals* of *hosts*, which are all weighed; says of what.

        A weigher that makes no difference between them adds nothing.
        """
        raw, multiplier = self._numbers(hosts, request)
        is_one = not isinstance(raw, np.ndarray)
        extremes = (raw, raw) if is_one else (float(raw.min()), float(raw.max()))
        bounds = chosen.bounds(self.weigher, *extremes)
        valued = Valued(self.weigher.name, raw, multiplier, bounds)
        if self.is_kept and bounds[0] == bounds[1]:
            return valued
        values = np.full(len(hosts), raw) if is_one else raw
        if self.is_kept:
            add_weighted(totals, np.empty(len(hosts)), values, multiplier, bounds, extremes)
        else:
            totals += normalise(values, *bounds) * multiplier
        return valued

    def _numbers(self, hosts: Candidates, request: Any) -> tuple[Any, Numbers]:
        """Raw values and multipliers of *hosts*, or one for all of them."""
        if not self.is_kept:
            return self.weigher.raw(hosts, request), self.weigher.multipliers(hosts)
        raw, multiplier = self.raw.values, self.multiplier.values
        return (
            raw[hosts.rows] if isinstance(raw, np.ndarray) else raw or 0.0,
            multiplier[hosts.rows] if isinstance(multiplier, np.ndarray) else multiplier or 0.0,
        )

    def put(self, row: int, value: float | None) -> None:
        """Set one raw value; None if the row does not pass any more."""
        before = self.raw.values
        if value is not None and value == (before if before is None else self.raw.of(row)):
            return
        if self.witnesses is not None and row in self.witnesses:
            self.witnesses, self.is_moved = None, True
        if value is None:
            return
        if not isinstance(before, np.ndarray):
            self.raw.put(np.array([row]), value)
            self.is_moved = True
            return
        before[row] = value
        if self.witnesses is not None:
            low, high = self.witnesses
            if not before[low] <= value <= before[high]:
                self.witnesses = (row, high) if value < before[low] else (low, row)
                self.is_moved = True

    def forget_witnesses(self, rows: frozenset[int]) -> None:
        if self.witnesses is not None and not rows.isdisjoint(self.witnesses):
            self.witnesses, self.is_moved = None, True

    def _notice(
        self, rows: np.ndarray, own: list[float], values: np.ndarray, known: tuple[int, int]
    ) -> None:
        """Of the *rows* just asked about, with their *own* values, some may be extreme now."""
        low, high = known
        least, most = min(own), max(own)
        if least < values.item(low):
            low = int(rows[own.index(least)])
        if most > values.item(high):
            high = int(rows[own.index(most)])
        if (low, high) != known:
            self.witnesses, self.is_moved = (low, high), True

    def extremes(self, passing: np.ndarray) -> Bounds:
        """Lowest and highest raw value where the mask *passing* is set."""
        values = self.raw.values
        if not isinstance(values, np.ndarray):
            return float(values or 0.0), float(values or 0.0)
        if self.witnesses is None:
            self.witnesses = _where_extreme(values, passing)
        low, high = self.witnesses
        return float(values[low]), float(values[high])

    def add_to(self, totals: np.ndarray, rows: np.ndarray, bounds: Bounds) -> None:
        """Add what the weigher makes of *rows* to their *totals*."""
        if bounds[0] != bounds[1]:
            totals += self._weighted_some(rows, bounds)

    def _weighted_some(self, rows: np.ndarray, bounds: Bounds) -> np.ndarray:
        low, high = bounds
        factor = self.multiplier.few(rows)
        values = np.minimum(np.maximum(self.raw.get(rows), low), high)
        values -= low
        values /= high - low
        if isinstance(factor, np.ndarray) or factor != 1.0:
            values *= factor
        return values

    def add_all_to(
        self, totals: np.ndarray, changed: np.ndarray, bounds: Bounds, passing: np.ndarray
    ) -> None:
        """The same for all rows at once; of those *changed* since, what it made is no longer so."""
        if bounds[0] == bounds[1]:
            self._weighted = None
            return
        if self._weighted is None or self._weighted[0] != bounds:
            kept = np.empty_like(totals) if self._weighted is None else self._weighted[1]
            extremes = self.extremes(passing)
            _put_weighted(kept, self.raw.values, self.multiplier.values, bounds, extremes)
            self._weighted = bounds, kept
        elif len(changed):
            self._weighted[1][changed] = self._weighted_some(changed, bounds)
        totals += self._weighted[1]

    def forget_weighted(self) -> None:
        """Of too many rows, what the weigher made when all were added up is no longer so."""
        self._weighted = None

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        kept = 0 if self._weighted is None else self._weighted[1].nbytes
        return self.raw.nbytes + self.multiplier.nbytes + kept


def _where_extreme(values: np.ndarray, passing: np.ndarray) -> tuple[int, int]:
    """The first rows with the lowest and the highest of *values* where *passing* is set."""
    count = np.count_nonzero(passing)
    if passing[:count].all():  # rows are given out one after the other
        own = values[:count]
        return int(own.argmin()), int(own.argmax())
    rows = np.flatnonzero(passing)
    own = values[rows]
    return int(rows[own.argmin()]), int(rows[own.argmax()])


def add_weighted(
    totals: np.ndarray,
    scratch: np.ndarray,
    raw: np.ndarray | float | None,
    multiplier: np.ndarray | float | None,
    bounds: Bounds,
    extremes: Bounds,
) -> None:
    """Add a weigher's part to all *totals* at once, with *scratch* to work in.

    Where the *extremes* are between the *bounds* there is nothing to clip, times 1 nothing to do.
    """
    if bounds[0] != bounds[1]:
        _put_weighted(scratch, raw, multiplier, bounds, extremes)
        totals += scratch


def _put_weighted(
    out: np.ndarray,
    raw: np.ndarray | float | None,
    multiplier: np.ndarray | float | None,
    bounds: Bounds,
    extremes: Bounds,
) -> None:
    low, high = bounds
    if extremes[0] < low or extremes[1] > high:
        raw = np.minimum(np.maximum(raw, low, out=out), high, out=out)  # type: ignore[arg-type]
    np.subtract(raw, low, out=out)  # type: ignore[arg-type]
    np.divide(out, high - low, out=out)
    if isinstance(multiplier, np.ndarray) or multiplier != 1.0:
        np.multiply(out, multiplier, out=out)  # type: ignore[arg-type]
