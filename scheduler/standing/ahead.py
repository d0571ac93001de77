"""What filters and weighers say of hosts as one request goes on, before the table knows of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from scheduler.hosts.candidates import Scope
from scheduler.standing.foresight import OneMore
from scheduler.standing.scores import Scores
from scheduler.standing.verdicts import PASSES, Verdicts

#: So many rows are asked about together at first: twice as many each time, up to the last.
_FEW, _MANY = 4, 256
#: So many instances more on one row that has got some are asked about together: this many times
#: what it has got, up to the last.
_DEEPER, _DEEPEST = 8, 32


class Ahead:
    """Answers about rows that have got instances of *request*, each of which takes *amounts*.

    Nothing else may happen to the table meanwhile; when they are consumed, ``are_told``.
    """

    def __init__(
        self,
        scope: Scope,
        request: Any,
        amounts: Mapping[str, int],
        verdicts: Verdicts,
        scores: Scores,
    ) -> None:
        self._scope = scope
        self._request = request
        self._amounts = amounts
        self._verdicts = verdicts
        self._scores = scores
        #: How many instances each row has got.
        self._taken = np.zeros(scope.table.capacity, dtype=np.int64)
        #: How many of those the table knows of.
        self._in_table = np.zeros(scope.table.capacity, dtype=np.int64)
        #: Per row the raw values with one instance more, with two, and so on, the first one last.
        self._known: dict[int, list[list[float] | None]] = {}
        self._together = _FEW

    def of_all(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whether each of *rows* passes with one instance more, and its raw values then."""
        return self._asked(rows, self._one_more(rows))

    def took(self, rows: list[int]) -> None:
        """Each of *rows* has got an instance."""
        self._taken[rows] += 1
        for row in rows:
            self._known.pop(row, None)

    def take(self, row: int, best: Callable[[int], list[int]]) -> list[float] | None:
        """The raw values of *row*, which gets an instance; None if it does not pass any more.

        If they are not known for a row that has got none, the rows that are likely to be next are
        asked about as well: as many of the *best* as that is asked for.
        """
        known = self._known.get(row)
        if not known:
            known = self._ask(row, best)
        self._taken[row] += 1
        return known.pop()

    def _ask(self, row: int, best: Callable[[int], list[int]]) -> list[list[float] | None]:
        known = self._known
        others, depth = [], 1
        if taken := self._taken.item(row):
            depth = min(_DEEPEST, _DEEPER * taken)
        else:
            others = [each for each in best(self._together) if each != row and not known.get(each)]
            self._together = min(_MANY, 2 * self._together)
        rows = np.array([row] * depth + others, dtype=np.int64)
        more = self._one_more(rows)
        more[:depth] += np.arange(depth)
        passes, raws = self._asked(rows, more)
        pairs = zip(passes.tolist(), raws.tolist(), strict=True)
        answers = [own if each_passes else None for each_passes, own in pairs]
        known.update(zip(others, ([each] for each in answers[depth:]), strict=True))
        known[row] = answers[depth - 1 :: -1]
        return known[row]

    def are_told(self, row: int | None) -> None:
        """The table knows of all, also of one on *row* that nobody has asked about."""
        self._in_table = self._taken.copy()
        if row is not None:
            self._in_table[row] += 1

    def _one_more(self, rows: np.ndarray) -> np.ndarray:
        """How many more than the table knows of each of *rows* has with the next one."""
        more: np.ndarray = self._taken[rows] - self._in_table[rows] + 1
        return more

    def _asked(self, rows: np.ndarray, more: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        hosts = OneMore(self._scope, rows, self._amounts, more)
        found, raws = hosts.answers(self._request, self._verdicts, self._scores)
        return found == PASSES, raws
