"""Choice among the hosts that pass: the best first (page scheduling, 2.1 e and f, and 2.5)."""

import functools
import itertools
import random
from collections.abc import Callable, Iterator

import numpy as np

from scheduler.engine.evaluation import Evaluation
from scheduler.engine.record import TOP_HOSTS

#: Blocks of hosts whose maxima are compared to find the best few; 64 was the fastest of 16 to 256
#: at 10,000 hosts (20 µs for the best sixteen, where a partition takes 80 and a sort 600).
_BLOCK = 64
Claimable = Callable[[np.ndarray], np.ndarray]
"""Mask of the rows that may be chosen."""

Draws = Callable[[], random.Random]
"""Gives the source of random numbers."""
FirstOf = Callable[[np.ndarray], int]
"""The one of some rows, given in the table's order, that stood first in an earlier choice."""


class Choice:
    """An order of hosts by total weight; the first that may be chosen is ``chosen_row``.

    ``totals[row]`` is the weight of a row that is a candidate.  Equal rows stay in the order of the
    choice *before*, if there was one and the semantics keep it, else in that of *rows*.
    """

    def __init__(
        self, evaluation: Evaluation, claimable: Claimable, before: FirstOf | None
    ) -> None:
        self._evaluation = evaluation
        #: The candidates, in the table's order unless a filter gave them another.
        self.rows = evaluation.hosts.rows
        self.totals = evaluation.totals_of_rows()
        self.chosen_row: int | None = None
        #: True when weight alone decided.
        self.by_weight_alone = True
        self._claimable = claimable
        self._before = before
        #: All candidates in order, where something else than weight decided about that.
        self._order: np.ndarray | None = None

    def choose(self, draws: Draws, subset_size: int, *, shuffle_best: bool) -> int | None:
        """The row to choose; None if there is none.

        With *shuffle_best* the hosts that are equal to the best are put into an order drawn; the
        row is drawn among the first *subset_size* that are claimable.
        """
        if shuffle_best:
            self._shuffle(draws())
        first = list(itertools.islice(self.best(self.rows), max(2, subset_size)))
        size = min(max(1, subset_size), len(first))
        if first:
            self.chosen_row = first[draws().randrange(size) if size > 1 else 0]
            few = self.totals[first[:2]]
            self.by_weight_alone = len(few) < 2 or (size < 2 and bool(few[0] != few[1]))
        return self.chosen_row

    def first(self, count: int) -> list[int]:
        """The chosen row and the best of the others, *count* together."""
        best = itertools.islice(self.best(self.rows), count)
        others = [row for row in best if row != self.chosen_row]
        return [] if self.chosen_row is None else [self.chosen_row, *others][:count]

    def best(self, rows: np.ndarray) -> Iterator[int]:
        """Those of *rows* that may be chosen, best first; *rows* are some of the candidates."""
        if self._order is not None:
            return self._in_order(self._order[np.isin(self._order, rows)])
        if self._before is not None:
            return self._one_by_one(rows)
        return self._from_the_top(rows)

    def _in_order(self, rows: np.ndarray) -> Iterator[int]:
        return iter(rows[self._claimable(rows)].tolist())

    def _from_the_top(self, rows: np.ndarray) -> Iterator[int]:
        head = self._best_of_all if rows is self.rows else self._head(rows)
        allowed = self._claimable(head)
        found = head.tolist() if allowed.all() else head[allowed].tolist()
        yield from found
        if len(head) < len(rows):
            rows = rows[np.argsort(-self.totals[rows], kind="stable")]
            yield from itertools.islice(self._in_order(rows), len(found), None)

    @functools.cached_property
    def _best_of_all(self) -> np.ndarray:
        return self._head(self.rows)

    def _head(self, rows: np.ndarray) -> np.ndarray:
        """At least the best sixteen of *rows* in order, all equal to the last of them included."""
        totals = self._evaluation.totals if rows is self.rows else self.totals[rows]
        blocks = len(totals) // _BLOCK
        if blocks > TOP_HOSTS:
            # Blocks of every so manieth: half the time of those of neighbours.
            maxima = totals[: blocks * _BLOCK].reshape(_BLOCK, blocks).max(axis=0)
            # So many blocks have a maximum as high: so many hosts are at least as good.
            least = np.partition(maxima, blocks - TOP_HOSTS)[blocks - TOP_HOSTS]
            places = np.flatnonzero(totals >= least)
            rows, totals = rows[places], totals[places]
        return rows[np.argsort(-totals, kind="stable")]

    def _one_by_one(self, rows: np.ndarray) -> Iterator[int]:
        """Those of *rows* that may be chosen, where an earlier choice decides among equals."""
        totals = np.where(self._claimable(rows), self.totals[rows], -np.inf)
        while len(totals):
            place = int(totals.argmax())
            highest = totals[place]
            if highest == -np.inf:
                return
            if self._before is not None and (totals[place + 1 :] == highest).any():
                equals = np.flatnonzero(totals == highest)
                first = self._before(rows[equals])
                place = int(equals[(rows[equals] == first).argmax()])
            totals[place] = -np.inf
            yield int(rows[place])

    def first_of(self, rows: np.ndarray) -> int:
        """The one of *rows*, given in the table's order, that stood first in this choice."""
        if self.chosen_row is not None and (rows == self.chosen_row).any():
            return self.chosen_row
        if self._order is not None:
            return int(self._order[np.isin(self._order, rows)][0])
        totals = self.totals[rows]
        rows = rows[totals == totals.max()]
        if len(rows) > 1 and self._before is not None:
            return self._before(rows)
        return int(rows[0])

    def _shuffle(self, rng: random.Random) -> None:
        """Put all candidates in order, claimable or not; those equal to the best are drawn."""
        everything = Choice(self._evaluation, lambda rows: rows == rows, self._before)
        order = np.array(list(everything.best(self.rows)), dtype=np.int64)
        totals = self.totals[order]
        best = order[totals == totals[:1]].tolist()
        rng.shuffle(best)
        self._order = np.concatenate([np.array(best, dtype=np.int64), order[len(best) :]])
