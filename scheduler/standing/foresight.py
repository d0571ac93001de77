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

#: So many rows are asked about together.
_TOGETHER = 128


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
    """The answers for rows that get one instance more, which takes *amounts* of their columns."""

    def __init__(
        self,
        scope: Scope,
        request: Any,
        verdicts: Verdicts,
        scores: Scores,
        amounts: Mapping[str, int],
    ) -> None:
        self._scope = scope
        self._request = request
        self._verdicts = verdicts
        self._scores = scores
        self._amounts = amounts
        self._known: dict[int, tuple[bool, list[float]]] = {}

    def of(self, row: int, totals: np.ndarray) -> tuple[bool, list[float]]:
        """Whether *row* passes now that it has its instance, and its raw values.

        If that is not known, the rows with the highest *totals* are asked about as well.
        """
        if row not in self._known:
            self._ask(row, totals)
        return self._known.pop(row)

    def forget(self, rows: Iterable[int]) -> None:
        """Something else has happened to *rows*."""
        for row in rows:
            self._known.pop(row, None)

    def _ask(self, row: int, totals: np.ndarray) -> None:
        together = min(_TOGETHER, len(totals) - 1)
        best = np.argpartition(totals, -together)[-together:] if together else np.arange(0)
        best = best[(totals[best] > NO_CANDIDATE) & (best != row)]
        best = best[[each not in self._known for each in best.tolist()]].astype(np.int64)
        rows = np.concatenate([np.array([row]), best])
        more = np.ones(len(rows), dtype=np.int64)
        more[0] = 0  # it has been given its instance
        hosts = _OneMore(self._scope, rows, self._amounts, more)
        passes = self._verdicts.judged(hosts, self._request) == PASSES
        raws = np.zeros((len(rows), self._scores.num_kept))
        if passes.any():
            raws[passes] = self._scores.raw_of(hosts.take(passes), self._request)
        for each, passing, values in zip(
            rows.tolist(), passes.tolist(), raws.tolist(), strict=True
        ):
            self._known[each] = passing, values
