"""The hosts that pass for one instance, best first as far as anyone looks.

Reference page scheduling, sections 2.1 (steps e and f) and 2.5.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator

import numpy as np

#: So many of the best are found one by one before all are put in order.
_FEW = 6
#: So many of the best may be wanted before it is worth while to add up all.
HEAD = _FEW + 1

Claimable = Callable[[np.ndarray], np.ndarray]
"""Which of some rows may be picked."""

Head = tuple[np.ndarray, np.ndarray, int]
"""Rows in order, their totals, and how many of the best of all hosts are certainly among them."""


class Draws:
    """A source of random numbers, made when it is first wanted: few decisions draw."""

    def __init__(self, seed: int, rng: random.Random | None = None) -> None:
        """With *rng* it is that one."""
        self._seed = seed
        self._rng = rng

    def __call__(self) -> random.Random:
        if self._rng is None:
            self._rng = random.Random(self._seed)  # choice among equals, not a secret
        return self._rng


class Ranking:
    """An order of hosts by total weight; equal ones stay in the order given.

    ``totals[i]`` belongs to row ``rows[i]``, or to row *i* without *rows*; ``-inf`` marks what is
    no host.  Where *shuffle_best* is set, the hosts that are equal to the best are put into an
    order drawn from *draws*; the pick is drawn among the first *subset_size* that are *claimable*.
    """

    def __init__(
        self,
        totals: np.ndarray | Callable[[], np.ndarray],
        rows: np.ndarray | None,
        claimable: Claimable,
        draws: Draws,
        subset_size: int = 1,
        *,
        shuffle_best: bool = False,
        head: Head | None = None,
    ) -> None:
        """Totals that are a function of nothing are added up only if the *head* does not do."""
        self._given = totals
        if not callable(totals):
            self._totals = totals
        self._rows = rows
        self._claimable = claimable
        self._order: np.ndarray | None = None
        if shuffle_best:
            self._order = self._with_best_shuffled(draws())
        self._is_simple = self._order is None and subset_size <= 1
        #: The best in order, and their totals; empty if they were not looked for apart.
        self._head: dict[int, float] = {}
        if head is not None and self._is_simple:
            self._head = self._first_of(*head)
        #: The position of the pick in the totals; None if there is none.
        self._pick: int | None
        if self._head:
            self._pick = next(iter(self._head))
        elif self._is_simple:
            self._pick = self._best(self._totals)
        else:
            self._pick = self._drawn(draws, subset_size)

    @functools.cached_property
    def _totals(self) -> np.ndarray:
        return self._given() if callable(self._given) else self._given

    def _first_of(self, rows: np.ndarray, totals: np.ndarray, count: int) -> dict[int, float]:
        """The first *count* of *rows*; nothing if one of them may not be picked."""
        order = np.argsort(-totals, kind="stable")[:count]
        first = rows[order]
        if not self._claimable(first).all():
            return {}
        return dict(zip(first.tolist(), totals[order].tolist(), strict=True))

    def totals_of(self, rows: list[int]) -> list[float]:
        """The total weights of a few rows."""
        if self._head and self._head.keys() >= set(rows):
            return [self._head[row] for row in rows]
        if self._rows is None:
            return [self._totals.item(row) for row in rows]
        return [float(self._totals[np.flatnonzero(self._rows == row)[0]]) for row in rows]

    def best(self) -> Iterator[int]:
        """The rows that may be picked: the pick, then the others, best first."""
        if self._pick is None:
            return
        yield self._row(self._pick)
        found = 0
        if self._head:
            found = len(self._head) - 1
            yield from list(self._head)[1:]
        elif self._is_simple:
            totals = self._totals.copy()
            best: int | None = self._pick
            while best is not None and found < _FEW:
                totals[best] = -np.inf
                best = self._best(totals)
                if best is not None:
                    found += 1
                    yield self._row(best)
            if best is None:
                return
        order = self._allowed_in_order()
        for position in order[order != self._pick][found:].tolist():
            yield self._row(position)

    def ranked(self) -> np.ndarray:
        """All rows: the pick, the others by weight, then those that may not be picked."""
        order = self._in_order()
        order = order[np.argsort(~self._allowed[order], kind="stable")]
        order = np.concatenate([order[order == self._pick], order[order != self._pick]])
        return order if self._rows is None else self._rows[order]

    def passed(self) -> np.ndarray:
        """All rows in the order given."""
        positions = np.flatnonzero(self._totals > -np.inf)
        return positions if self._rows is None else self._rows[positions]

    def _row(self, position: int) -> int:
        return position if self._rows is None else int(self._rows[position])

    def _best(self, totals: np.ndarray) -> int | None:
        """The first position of the highest of *totals* that may be picked."""
        best = int(totals.argmax()) if len(totals) else 0
        if len(totals) and not self._claimable(np.array([self._row(best)]))[0]:
            totals = np.where(self._allowed, totals, -np.inf)
            best = int(totals.argmax())
        return best if len(totals) and totals[best] > -np.inf else None

    def _drawn(self, draws: Draws, subset_size: int) -> int | None:
        order = self._allowed_in_order()
        if not len(order):
            return None
        size = min(max(1, subset_size), len(order))
        return int(order[draws().randrange(size) if size > 1 else 0])

    @functools.cached_property
    def _allowed(self) -> np.ndarray:
        """Mask of the positions that may be picked."""
        rows = np.arange(len(self._totals)) if self._rows is None else self._rows
        return self._claimable(rows)

    def _in_order(self) -> np.ndarray:
        if self._order is None:
            order = np.argsort(-self._totals, kind="stable")
            self._order = order[self._totals[order] > -np.inf]
        return self._order

    def _allowed_in_order(self) -> np.ndarray:
        order = self._in_order()
        allowed: np.ndarray = order[self._allowed[order]]
        return allowed

    def _with_best_shuffled(self, rng: random.Random) -> np.ndarray:
        order = self._in_order()
        totals = self._totals[order]
        best = order[totals == totals[0]].tolist() if len(order) else []
        rng.shuffle(best)
        return np.concatenate([np.array(best, dtype=order.dtype), order[len(best) :]])
