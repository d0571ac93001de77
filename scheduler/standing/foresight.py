"""What filters and weighers will say of hosts once they have one instance more.

Asking about many rows at once costs little more than asking about one, so the best rows are asked
about together, and a pick among them finds its answers there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from scheduler.hosts.candidates import Candidates, Scope
from scheduler.standing.scores import NO_CANDIDATE, Scores
from scheduler.standing.verdicts import PASSES, Verdicts

#: So many rows are asked about together: twice as many as before when it was of use.
_FEW, _MANY = 4, 128


class _OneMore(Candidates):
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
        return _OneMore(self.scope, self.rows[chosen], self._amounts, self._more[chosen])


class Foresight:
    """The answers for rows that get one instance more, which takes *amounts* of their columns.

    They are answers to what the row was expected to be, and are given only if it is that.
    """

    def __init__(self, amounts: Mapping[str, int]) -> None:
        self._amounts = amounts
        self._known: dict[int, tuple[list[int], int, list[float]]] = {}
        self._together = _FEW

    def of(
        self, scope: Scope, request: Any, row: int, verdicts: Verdicts, scores: Scores
    ) -> tuple[int, list[float]]:
        """Verdict on and raw values of *row*, of which only what picks add to has changed.

        If they are not known, rows that are likely to be next are asked about as well.
        """
        column = scope.table.column
        now = [column(name)[row].item() for name in self._amounts]
        expected, verdict, raws = self._known.pop(row, (None, PASSES, []))
        if expected == now:
            self._together = min(_MANY, 2 * self._together)
            return verdict, raws
        rows = np.array([row, *self._next(row, scores)], dtype=np.int64)
        self._ask(scope, request, rows, verdicts, scores)
        _expected, verdict, raws = self._known.pop(row)
        return verdict, raws

    def forget(self, rows: Iterable[int]) -> None:
        """Something else has happened to *rows*."""
        for row in rows:
            if self._known.pop(row, None) is not None:
                self._together = _FEW

    def _next(self, row: int, scores: Scores) -> list[int]:
        """The rows with the highest totals that are not known yet."""
        totals = scores.last_totals
        together = min(self._together, len(totals) - 1)
        if together < 1:
            return []
        best = np.argpartition(totals, -together)[-together:]
        best = best[totals[best] > NO_CANDIDATE]
        return [each for each in best.tolist() if each != row and each not in self._known]

    def _ask(
        self, scope: Scope, request: Any, rows: np.ndarray, verdicts: Verdicts, scores: Scores
    ) -> None:
        more = np.ones(len(rows), dtype=np.int64)
        more[0] = 0  # it has got its instance
        hosts = _OneMore(scope, rows, self._amounts, more)
        found = verdicts.judged(hosts, request)
        passes = found == PASSES
        raws = np.zeros((len(rows), scores.num_kept))
        if passes.any():
            raws[passes] = scores.raw_of(hosts.take(passes), request)
        expected = np.array([getattr(hosts, name) for name in self._amounts]).T
        answers = zip(expected.tolist(), found.tolist(), raws.tolist(), strict=True)
        self._known.update(zip(rows.tolist(), answers, strict=True))
