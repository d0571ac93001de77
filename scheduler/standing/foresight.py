"""What filters and weighers will say of hosts once they have one instance more.

Asking about many rows at once costs little more than asking about one, so the best rows are asked
about together, and a pick among them finds its answers there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from scheduler.hosts.candidates import Candidates, OneCandidate, Scope
from scheduler.standing.scores import Scores
from scheduler.standing.verdicts import PASSES, Verdicts

#: So many rows are asked about together: twice as many as before when it was of use.
_FEW, _MANY = 4, 256
#: After so many picks in a row that nobody had expected, only one of so many is worth a guess.
_MISSED, _SELDOM = 2, 16
#: So many instances more on one row that gets one after the other; doubled likewise.
_DEEPEST = 32

Answer = tuple[list[int], int, list[float]]
"""What was expected of the row, the verdict on it, and its raw values."""


class OneMore(Candidates):
    """Candidates as they will be once *more* of the *amounts* have been added to each."""

    def __init__(
        self, scope: Scope, rows: np.ndarray, amounts: Mapping[str, int], more: np.ndarray
    ) -> None:
        super().__init__(scope, rows)
        self._amounts = amounts
        self._more = more

    def __getattr__(self, name: str) -> np.ndarray:
        values = super().__getattr__(name)
        amount = self._amounts.get(name)
        return values if amount is None else values + amount * self._more

    def take(self, chosen: np.ndarray) -> Candidates:
        """The candidates at *chosen*, with as much more."""
        return OneMore(self.scope, self.rows[chosen], self._amounts, self._more[chosen])

    def answers(
        self, request: Any, verdicts: Verdicts, scores: Scores
    ) -> tuple[np.ndarray, np.ndarray]:
        """The verdict on each, and the raw values of those that pass, a column per weigher."""
        found = verdicts.judged(self, request)
        passes = found == PASSES
        if passes.all():
            return found, scores.raw_of(self, request)
        raws = np.zeros((len(self), scores.num_kept))
        if passes.any():
            raws[passes] = scores.raw_of(self.take(passes), request)
        return found, raws


class Foresight:
    """The answers for rows that get one instance more, which takes *amounts* of their columns.

    They are answers to what the row was expected to be, and are given only if it is that.  When
    the table grows they end.
    """

    def __init__(self, amounts: Mapping[str, int]) -> None:
        self._amounts = amounts
        #: Per row the answers for one instance more, for two, and so on; the first one last.
        self._known: dict[int, list[Answer]] = {}
        self._together = _FEW
        self._columns: list[np.ndarray] = []
        self._last = -1
        self._depth = 1
        self._missed = 0

    def of(
        self,
        scope: Scope,
        request: Any,
        row: int,
        verdicts: Verdicts,
        scores: Scores,
        likely: Callable[[int], list[int]] | None = None,
    ) -> tuple[int, list[float]]:
        """Verdict on and raw values of *row*, of which only what picks add to has changed.

        If they are not known, rows that are likely to be next are asked about as well: as many
        of the best as *likely* is asked for, by the totals of *scores* without it.
        """
        if not self._columns:
            self._columns = [scope.table.column(name) for name in self._amounts]
        answers = self._known.pop(row, None)
        if answers:
            expected, verdict, raws = answers.pop()
            if expected == [column.item(row) for column in self._columns]:
                self._together = min(_MANY, 2 * self._together)
                self._missed = 0
                if answers:
                    self._known[row] = answers
                return verdict, raws
        self._depth = min(_DEEPEST, 2 * self._depth) if row == self._last else 1
        self._last = row
        others = self._likely(row, likely or scores.best)
        if not others and self._depth == 1:
            host = OneCandidate(scope, row)
            verdict = verdicts.judged_alone(host, request)
            return verdict, scores.raw_alone(host, row, request) if verdict == PASSES else []
        self._ask(scope, request, row, others, verdicts, scores)
        answers = self._known.pop(row)
        _expected, verdict, raws = answers.pop()
        if answers:
            self._known[row] = answers
        return verdict, raws

    def _likely(self, row: int, best: Callable[[int], list[int]]) -> list[int]:
        """Other rows that may be next; none for a while when guesses do not come true."""
        self._missed += 1
        if self._missed > _MISSED and self._missed % _SELDOM:
            return []
        return [each for each in best(self._together) if each != row and each not in self._known]

    def forget(self, rows: Iterable[int]) -> None:
        """Something else has happened to *rows*."""
        for row in rows:
            if self._known.pop(row, None) is not None:
                self._together = _FEW

    def _ask(
        self,
        scope: Scope,
        request: Any,
        row: int,
        others: list[int],
        verdicts: Verdicts,
        scores: Scores,
    ) -> None:
        depth = self._depth
        rows = np.array([row] * depth + others, dtype=np.int64)
        more = np.ones(len(rows), dtype=np.int64)
        more[:depth] = np.arange(depth)  # it has got its instance
        hosts = OneMore(scope, rows, self._amounts, more)
        found, raws = hosts.answers(request, verdicts, scores)
        expected = np.array([getattr(hosts, name) for name in self._amounts]).T
        answers = list(zip(expected.tolist(), found.tolist(), raws.tolist(), strict=True))
        self._known[row] = answers[depth - 1 :: -1]
        self._known.update(zip(others, ([each] for each in answers[depth:]), strict=True))
