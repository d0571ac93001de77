"""What one decision said of every host, kept such that it can be found out again.

Nothing here is text, and nothing is copied for a decision: where results stood, there is a place
in their history; where hosts were asked about for this request alone, there are the arrays that
this gave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from scheduler.filters.base import BaseHostFilter
from scheduler.semantics import Bounds
from scheduler.standing import Asked, History, ReasonNumbers
from scheduler.weights.weighing import Valued, normalise

_BASE_BYTES: Final = 1000

#: Filter number in the chain and reason code.
Verdict = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Ranked:
    """Rows best first, their totals, and what those are made of, in that order."""

    rows: np.ndarray
    totals: np.ndarray
    valued: list[Valued]


@dataclass(slots=True)
class Detail:
    """The first instance's decision, by row of the host table."""

    #: The rows that were asked about, in order.
    rows: np.ndarray
    #: The filters of the chain.
    filters: Sequence[BaseHostFilter]
    #: Position of the table's journal: what changed since is known from there.
    position: int
    #: Where verdicts stood: their history, the position in it, and what its numbers mean.
    history: History | None = None
    at: int = 0
    numbers: ReasonNumbers | None = None
    #: Rows that filters removed which had to be asked.
    removed: list[tuple[int, str, np.ndarray]] = field(default_factory=list)
    #: Where scores stood, what they were normalised with; None if nothing was weighed.
    bounds: Sequence[Bounds] | None = None
    #: Weighers that were asked about few rows while the others stood.
    asked: Sequence[Asked] = ()
    #: A filter that removed all that reached it but some rows: its number, the reason, the rows.
    all_but: tuple[int, str, np.ndarray] | None = None
    #: Where scores did not stand, the weighers' numbers for the rows that were left, in order.
    valued: list[Valued] | None = None

    @property
    def nbytes(self) -> int:
        """About how much memory it takes, the history not included."""
        if not (self.asked or self.removed or self.valued):
            return _BASE_BYTES
        few = sum(each.nbytes for each in self.asked)
        arrays = [rows for _filter, _code, rows in self.removed]
        for each in self.valued or ():
            arrays += [n for n in (each.raw, each.multiplier) if isinstance(n, np.ndarray)]
        return _BASE_BYTES + few + sum(each.nbytes for each in arrays)

    def note(self, number: int, code: str, rows: np.ndarray) -> None:
        """Filter number *number* removes *rows* for the reason *code*."""
        self.removed.append((number, code, rows))

    def verdicts(self) -> list[tuple[Verdict, np.ndarray]] | None:
        """Which rows were removed for which reason, in the order of the chain.

        None if that is forgotten.
        """
        standing: dict[Verdict, np.ndarray] = {}
        if self.history is not None and self.numbers is not None:
            of_row = self.history.verdicts_at(self.at)
            if of_row is None:
                return None
            of_rows = of_row[self.rows]
            for number in np.unique(of_rows[of_rows > 0]).tolist():
                standing[self.numbers.meaning(number)] = self.rows[of_rows == number]
        asked = {(number, code): rows for number, code, rows in self.removed}
        if self.all_but is not None:
            self._add_others(asked, {**standing, **asked}, *self.all_but)
        gone = np.zeros(0, dtype=np.int64)
        found: list[tuple[Verdict, np.ndarray]] = []
        for verdict in sorted({*standing, *asked}):
            rows = asked.get(verdict)
            if rows is not None:
                gone = np.concatenate([gone, rows])
            else:
                rows = standing[verdict]
                rows = rows[~np.isin(rows, gone)]
            if len(rows):
                found.append((verdict, rows))
        return found

    def _add_others(
        self,
        asked: dict[Verdict, np.ndarray],
        known: dict[Verdict, np.ndarray],
        number: int,
        code: str,
        few: np.ndarray,
    ) -> None:
        """Filter *number* removed all that no other had removed before it, but a *few*."""
        before = [rows for (earlier, _code), rows in known.items() if earlier < number]
        others = self.rows[~np.isin(self.rows, np.concatenate([few, *before]))]
        own = asked.get((number, code), others[:0])
        asked[number, code] = np.sort(np.concatenate([own, others]))

    def ranked(self) -> Ranked | None:
        """The hosts that passed, by weight; None if that is forgotten."""
        verdicts = self.verdicts()
        if verdicts is None:
            return None
        removed = np.concatenate([[], *(rows for _verdict, rows in verdicts)])
        rows = self.rows[~np.isin(self.rows, removed)]
        valued = self.valued
        if valued is None:
            moment = None if self.history is None else self.history.at(self.at)
            valued = moment.valued(rows, self.bounds) if moment and self.bounds else []
            for one in self.asked:
                valued.insert(one.place, one.valued(rows))
        totals = np.zeros(len(rows))
        for each in valued:
            if each.bounds is not None:
                raw = np.broadcast_to(np.asarray(each.raw, dtype=np.float64), len(rows))
                totals = totals + normalise(raw, *each.bounds) * each.multiplier
        order = np.argsort(-totals, kind="stable")
        return Ranked(rows[order], totals[order], [each.some(order) for each in valued])
