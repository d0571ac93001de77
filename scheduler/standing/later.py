"""The second and later instances of one request, at the price of the pick before each.

Reference page scheduling, sections 2.1 and 2.5: filters that run once per request do not run
again, and a host that was dropped for one instance does not come back for the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from scheduler.concurrency import BREATHS
from scheduler.hosts.candidates import Scope
from scheduler.semantics import Bounds
from scheduler.standing.classes import Standing
from scheduler.standing.foresight import Foresight
from scheduler.standing.scores import NO_CANDIDATE
from scheduler.standing.verdicts import ABSENT, PASSES, PICKED


class LaterInstances:
    """What stood for the first instance of *request*, and what the picks have made of it.

    With *keeps_ranking* hosts that are equal stand as they did for the instance before, the pick
    first; without, in the order of the table.
    """

    def __init__(
        self, standing: Standing, scope: Scope, request: Any, *, keeps_ranking: bool
    ) -> None:
        self._scope = scope
        self._request = request
        self._keeps_ranking = keeps_ranking
        self._position = standing.position
        self._verdicts = standing.verdicts.of_later_instances()
        self._scores = standing.scores.copy()
        self._interest = self._verdicts.interest | self._scores.reads
        #: Bounds in force, each with the number of the first ranking that was made with them.
        self._epochs: list[tuple[int, list[Bounds] | None]] = [(0, self._scores.bounds)]
        self._picked_at = np.full(scope.table.capacity, -1, dtype=np.int32)
        self._rankings = 1
        self._foresight: Foresight | None = None
        self._given: int | None = None

    def picked(self, row: int, amounts: Mapping[str, int] | None) -> None:
        """The instance of the ranking before got *row*.

        It has taken *amounts* of the row's columns and nothing else, or None: the journal tells.
        """
        self._picked_at[row] = self._rankings - 1
        self._given = None
        if amounts is not None:
            self._given = row
            self._foresight = self._foresight or Foresight(amounts)

    def best(self) -> Iterator[int]:
        """The rows that pass for the next instance, best first."""
        BREATHS.take()
        self._take_in()
        passing = self._verdicts.passing
        totals = self._scores.totals(passing, self._verdicts.num_passing)
        if self._epochs[-1][1] != self._scores.bounds:
            self._epochs.append((self._rankings, self._scores.bounds))
        self._rankings += 1
        return self._in_order(totals)

    def _take_in(self) -> None:
        changes = self._scope.table.changes
        news = changes.since(self._position, self._interest)
        if news is None:
            raise RuntimeError("the journal of the host table is too short for one request")
        self._position = changes.position
        foresight = self._foresight
        if len(news) == 1 and foresight is not None and self._is_given(news):
            row = next(iter(news))
            parts = self._verdicts, self._scores
            self._take(row, *foresight.of(self._scope, self._request, row, *parts))
        elif news:
            self._ask_again(news)

    def _is_given(self, news: Mapping[int, int]) -> bool:
        """Whether all that happened is that the pick has got its instance."""
        [(row, changed)] = news.items()
        return row == self._given and not changed & ~PICKED

    def _take(self, row: int, verdict: int, raws: list[float]) -> None:
        self._scores.put(row, raws if verdict == PASSES else None)
        if verdict != PASSES:
            self._verdicts.put(row, ABSENT)

    def _ask_again(self, news: Mapping[int, int]) -> None:
        if self._foresight is not None:
            self._foresight.forget(news)
        rows = np.fromiter(news.keys(), dtype=np.int64, count=len(news))
        changed = np.fromiter(news.values(), dtype=np.int64, count=len(news))
        of_row = self._verdicts.of_row
        before = of_row[rows]
        self._verdicts.judge_changed(self._scope, self._request, rows, changed)
        after = of_row[rows]
        of_row[rows[after != PASSES]] = ABSENT
        masks = before == PASSES, after == PASSES
        self._scores.weigh_changed(self._scope, self._request, rows, changed, *masks)

    def _in_order(self, totals: np.ndarray) -> Iterator[int]:
        best = self._first(totals)
        left = None
        while best is not None:
            yield best
            if left is None:
                left = totals.copy()
            left[best] = NO_CANDIDATE
            best = self._first(left)

    def _first(self, totals: np.ndarray) -> int | None:
        best = int(totals.argmax()) if len(totals) else 0
        if not len(totals) or totals[best] == NO_CANDIDATE:
            return None
        if not self._keeps_ranking:
            return best
        others = totals[best + 1 :]
        if not len(others) or others.max() < totals[best]:
            return best
        return self._first_before(np.flatnonzero(totals == totals[best]))

    def _first_before(self, equals: np.ndarray) -> int:
        """Of rows that are equal now the one that stood first for the instance before.

        The pick did; else it goes by the totals then, and so on back to the first ranking, which
        was of the table's order.  Between changes of the bounds, only picks change totals.
        """
        differ = not self._scores.are_alike(equals)
        for epoch in range(len(self._epochs) - 1, -1, -1):
            if len(equals) == 1:
                break
            picked_at = self._picked_at[equals]
            if picked_at.max() >= max(0, self._epochs[epoch][0] - 1):
                return int(equals[picked_at.argmax()])
            if epoch and differ:
                totals = self._scores.totals_within(equals, self._epochs[epoch - 1][1])
                equals = equals[totals == totals.max()]
        return int(equals[0])
