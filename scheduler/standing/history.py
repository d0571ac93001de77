"""What stood for a class of requests at an earlier moment, as far as that is remembered.

Nothing is copied for a decision.  Before verdicts and raw values change in place, what they were
is noted for the rows that change: going back from what is, note by note, gives what was.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from scheduler.semantics import Bounds
from scheduler.standing.per_row import Numbers
from scheduler.standing.scores import Scores
from scheduler.weights.weighing import Valued

#: So many changes of one class are remembered.
KEPT: Final = 4096
_BYTES_PER_CHANGE: Final = 2500


_Before = tuple[np.ndarray | int, Any, Sequence[Numbers | None], Sequence[Numbers]]
"""Some rows, or one, and their verdicts, raw values and multipliers before a change.

None is what has not changed; so are multipliers that are left out.
"""


class History:
    """The changes of ``of_row`` and of *scores*, which are those of one class.

    Both are changed in place for as long as the history is theirs; what comes anew has its own.
    """

    def __init__(self, of_row: np.ndarray, scores: Scores) -> None:
        self.of_row = of_row
        self._scores = scores
        #: How many changes there were.
        self.position = 0
        #: Whether results of the class still are these, so that they are there in any case.
        self.is_live = True
        #: What somebody has worked out from how it was at a position; kept until there is another.
        self.worked_out: tuple[int, Any] | None = None
        self._befores: deque[_Before] = deque(maxlen=KEPT)

    @property
    def nbytes(self) -> int:
        """Memory taken besides what is there in any case."""
        arrays = 0 if self.is_live else self.of_row.nbytes + self._scores.nbytes
        return arrays + _BYTES_PER_CHANGE * len(self._befores)

    def note(self, rows: np.ndarray, verdicts: np.ndarray, *, only_picks: bool) -> None:
        """*rows*, which have these *verdicts*, are about to change.

        With *only_picks*, nothing but what picks change, and all of them pass.
        """
        raws: Sequence[Numbers | None]
        multipliers: Sequence[Numbers] = ()
        if only_picks:
            raws = self._scores.picked_few(rows)
        else:
            raws, multipliers = self._scores.few(rows)
        self._befores.append((rows, verdicts, raws, multipliers))
        self.position += 1

    def note_pick(self, row: int) -> None:
        """What a pick changes of *row* is about to change."""
        self._befores.append((row, self.of_row.item(row), self._scores.raws_of_one(row), ()))
        self.position += 1

    def verdicts_at(self, position: int) -> np.ndarray | None:
        """The verdicts at *position*, to be read only; None if that is forgotten."""
        steps = self.position - position
        if steps > len(self._befores):
            return None
        if not steps:
            return self.of_row
        of_row = self.of_row.copy()
        for rows, verdicts, *_numbers in self._latest(steps):
            of_row[rows] = verdicts
        return of_row

    def at(self, position: int) -> Moment | None:
        """How it was at *position*; None if that is forgotten."""
        steps = self.position - position
        if steps > len(self._befores):
            return None
        of_row = self.of_row.copy()
        raws, multipliers = self._scores.whole()
        for rows, verdicts, *numbers in self._latest(steps):
            of_row[rows] = verdicts
            for now, then in zip((*raws, *multipliers), itertools.chain(*numbers), strict=False):
                if isinstance(now, np.ndarray) and then is not None:
                    now[rows] = then
        return Moment(of_row, self._scores.names, raws, multipliers)

    def _latest(self, steps: int) -> Iterator[_Before]:
        """So many of the latest notes, the newest first."""
        return itertools.islice(reversed(self._befores), steps)


@dataclass(frozen=True, slots=True)
class Moment:
    """Verdicts by row; raw values and multipliers of the weighers whose results are kept."""

    of_row: np.ndarray
    names: list[str]
    raws: list[Numbers]
    multipliers: list[Numbers]

    def valued(self, rows: np.ndarray, bounds: Sequence[Bounds]) -> list[Valued]:
        """What the totals of *rows* were made of where *bounds* were in force."""
        return [
            Valued(name, _of(raw, rows), _of(multiplier, rows), of_part)
            for name, raw, multiplier, of_part in zip(
                self.names, self.raws, self.multipliers, bounds, strict=True
            )
        ]


def _of(numbers: Numbers, rows: np.ndarray) -> Numbers:
    return numbers[rows] if isinstance(numbers, np.ndarray) else numbers
