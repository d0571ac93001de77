"""The second and later instances of one request, at the price of the pick before each.

Reference page scheduling, sections 2.1 and 2.5: filters that run once per request do not run
again, and a host that was dropped for one instance does not come back for the next.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from scheduler.concurrency import BREATHS
from scheduler.hosts.candidates import Scope
from scheduler.semantics import Bounds, Semantics
from scheduler.standing.classes import Standing
from scheduler.standing.foresight import Foresight
from scheduler.standing.front import Front
from scheduler.standing.scores import NO_CANDIDATE, Scores
from scheduler.standing.verdicts import ABSENT, PASSES, PICKED

#: Rows kept apart for fewer picks than this did not pay: then not for so many picks.
_FEW, PAUSE = 4, 64


class LaterInstances:
    """What stood for the first instance of *request*, and what the picks have made of it.

    Where the *semantics* keep the ranking, hosts that are equal stand as they did for the instance
    before, the pick first; else in the order of the table.
    """

    def __init__(
        self, standing: Standing, scope: Scope, request: Any, semantics: Semantics
    ) -> None:
        self._scope = scope
        self._request = request
        self._semantics = semantics
        self._keeps_ranking = semantics.keeps_ranking
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
        self._front: Front | None = None
        #: For how many more instances no rows are kept apart.
        self._pause = 0

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
        first = self._from_front()
        if first is None:
            first = self._from_all()
        self._rankings += 1
        return self._on_from(first)

    def _from_front(self) -> int | None:
        """The best row if it is sure to be among those kept apart."""
        front = self._front
        if front is None or not self._is_told(front) or not front.is_enough:
            return None
        found = front.first()
        if found is None:
            return None
        self._note_bounds(front.bounds)
        row, equals = found
        if equals is None or not self._keeps_ranking:
            return row
        return self._first_before(equals, front)

    def _is_told(self, front: Front) -> bool:
        """Tell *front* what has happened; whether that was something for it."""
        news = self._news()
        if news:
            if self._foresight is None or not self._is_given(news):
                return False
            self._position = self._scope.table.changes.position
            row = next(iter(news))
            verdict, raws = self._answer(self._foresight, row, front.best)
            if verdict != PASSES:
                self._verdicts.put(row, ABSENT)
            front.take(row, raws if verdict == PASSES else None)
        return True

    def _from_all(self) -> int | None:
        """The best row of all."""
        self._leave_front()
        self._take_in()
        num_passing = self._verdicts.num_passing
        totals = self._scores.totals(self._verdicts.passing, num_passing)
        self._note_bounds(self._scores.bounds)
        first = self._first(totals)
        if first is not None and num_passing > 1:
            self._keep_apart(first)
        return first

    def _keep_apart(self, first: int) -> None:
        """Keep the best rows apart, if *first* is among them and that has paid lately."""
        if self._given is None or self._pause > 0:
            self._pause -= 1
            return
        rows = np.flatnonzero(self._verdicts.passing)
        as_in_table = self._picked_at < 0 if self._keeps_ranking else self._verdicts.passing
        front = Front(self._scores, rows, self._semantics, as_in_table)
        if first in front:
            self._front = front
        else:
            self._pause = PAUSE

    def _leave_front(self) -> None:
        if self._front is not None:
            self._scores.take_over(self._front.changed)
            self._pause = PAUSE if len(self._front.changed) < _FEW else 0
            self._front = None

    def _note_bounds(self, bounds: list[Bounds] | None) -> None:
        if self._epochs[-1][1] != bounds:
            self._epochs.append((self._rankings, bounds))

    def _news(self) -> dict[int, int]:
        news = self._scope.table.changes.since(self._position, self._interest)
        if news is None:
            raise RuntimeError("the journal of the host table is too short for one request")
        return news

    def _take_in(self) -> None:
        news = self._news()
        self._position = self._scope.table.changes.position
        foresight = self._foresight
        if foresight is not None and self._is_given(news):
            row = next(iter(news))
            self._take(row, *self._answer(foresight, row, None))
        elif news:
            self._ask_again(news)

    def _answer(
        self, foresight: Foresight, row: int, likely: Callable[[int], list[int]] | None
    ) -> tuple[int, list[float]]:
        parts = self._verdicts, self._scores
        return foresight.of(self._scope, self._request, row, *parts, likely)

    def _is_given(self, news: Mapping[int, int]) -> bool:
        """Whether all that happened is that the pick has got its instance."""
        if len(news) != 1:
            return False
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
        changed = functools.reduce(operator.or_, news.values())
        of_row = self._verdicts.of_row
        before = of_row[rows]
        self._verdicts.judge_changed(self._scope, self._request, rows, changed)
        after = of_row[rows]
        of_row[rows[after != PASSES]] = ABSENT
        masks = before == PASSES, after == PASSES
        self._scores.weigh_changed(self._scope, self._request, rows, changed, masks)

    def _on_from(self, first: int | None) -> Iterator[int]:
        """Row *first*, then the others, best first; they are looked for when they are wanted."""
        if first is None:
            return
        yield first
        self._leave_front()
        totals = self._scores.totals(self._verdicts.passing, self._verdicts.num_passing).copy()
        best: int | None = first
        while best is not None:
            totals[best] = NO_CANDIDATE
            best = self._first(totals)
            if best is not None:
                yield best

    def _first(self, totals: np.ndarray) -> int | None:
        best = int(totals.argmax()) if len(totals) else 0
        if not len(totals) or totals[best] == NO_CANDIDATE:
            return None
        if not self._keeps_ranking:
            return best
        others = totals[best + 1 :]
        if not len(others) or others.max() < totals[best]:
            return best
        return self._first_before(np.flatnonzero(totals == totals[best]), self._scores)

    def _first_before(self, equals: np.ndarray, values: Scores | Front) -> int:
        """Of rows that are equal now the one that stood first for the instance before.

        The pick did; else it goes by the totals then, and so on back to the first ranking, which
        was of the table's order.  Between changes of the bounds, only picks change totals.
        """
        differ = not values.are_alike(equals)
        for epoch in range(len(self._epochs) - 1, -1, -1):
            if len(equals) == 1:
                break
            picked_at = self._picked_at[equals]
            if picked_at.max() >= max(0, self._epochs[epoch][0] - 1):
                return int(equals[picked_at.argmax()])
            if epoch and differ:
                totals = values.totals_within(equals, self._epochs[epoch - 1][1])
                equals = equals[totals == totals.max()]
        return int(equals[0])
