"""All later instances of one request, chosen before the table is told of any of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from scheduler.concurrency import BREATHS
from scheduler.hosts import columns
from scheduler.standing.ahead import Ahead
from scheduler.standing.front import Front
from scheduler.standing.later import LaterInstances
from scheduler.standing.stretch import next_picks
from scheduler.standing.verdicts import ABSENT

#: What the table is told of when instances come to a host, besides what they take.
_INSTANCES = columns.BITS[columns.INSTANCES]
#: After so many picks that moved nothing else it is worth to look for many at once; after a look
#: that has found fewer than the second number, only after twice as many, up to the last.
CALM, WORTH, PATIENT = 2, 16, 128
#: More rows that are equal are not put in order by how they once stood.
_EQUALS = 8


class Run(LaterInstances):
    """The same for as long as nothing but picks of the request changes its hosts.

    Without a call of ``rows`` it is just that.
    """

    _ahead: Ahead | None = None
    #: The row of the latest pick, as long as nothing follows from it.
    _untold: int | None = None

    @property
    def can_be_alone(self) -> bool:
        """Whether all that matters of a pick is what it takes of the columns."""
        return not self._interest & _INSTANCES

    def rows(self, first: int, amounts: Mapping[str, int], count: int) -> Iterator[list[int]]:
        """The rows of *count* instances, some at a time, of which the first gets *first*.

        Each takes *amounts*; of none the table is told before all are chosen, and then
        ``are_told`` is called.  There are fewer if no host passes any more.
        """
        self._ahead = Ahead(self._scope, self._request, amounts, self._verdicts, self._scores)
        self._calm, self._patience = 0, CALM
        self._picked(first)
        found = [first]
        while found:
            count -= len(found)
            yield found
            if not count:
                return
            BREATHS.take()
            self._tell()
            found = self._many(self._ahead, count) or self._one()

    def are_told(self) -> None:
        """The table knows of all that was chosen."""
        if self._ahead is not None:
            self._ahead.are_told(self._untold)

    def _one(self) -> list[int]:
        first = self._from_front()
        if first is None:
            first = self._from_all()
        self._rankings += 1
        if first is None:
            return []
        self._picked(first)
        return [first]

    def _picked(self, row: int) -> None:
        """The instance of the last ranking gets *row*."""
        self._picked_at[row] = self._rankings - 1
        self._given = self._untold = row

    def _tell(self) -> None:
        """See what follows from the latest pick; that of the last instance may not matter."""
        row, front = self._untold, self._front
        if row is None or self._ahead is None:
            return
        self._untold = None
        raws = self._ahead.take(row, self._scores.best if front is None else front.best)
        if raws is None:
            self._verdicts.put(row, ABSENT)
        if front is None:
            self._scores.put(row, raws)
            return
        before = front.times
        front.take(row, raws)
        self._calm = self._calm + 1 if front.times == before else 0

    def _many(self, ahead: Ahead, most: int) -> list[int]:
        """The next rows, if they are among those kept apart and follow each other simply."""
        front = self._front
        if front is None or self._calm < self._patience or most < WORTH or not front.is_enough:
            return []
        passes, raws = ahead.of_all(front.rows)
        found = next_picks(front, passes, raws, self._tie_order, most)
        self._calm = 0
        self._patience = CALM if len(found) >= WORTH else min(PATIENT, 2 * self._patience)
        if found:
            self._note_bounds(front.bounds)
            self._picked_at[found] = np.arange(self._rankings, self._rankings + len(found))
            self._rankings += len(found)
            self._given = found[-1]
            ahead.took(found)
        return found

    def _tie_order(self, equals: np.ndarray) -> np.ndarray | None:
        """Rows that are equal in the order in which they are picked; None of too many."""
        front = self._front
        if front is None or not self._keeps_ranking:
            return equals
        if self._picked_at[equals].max() < 0 and front.are_alike(equals):
            return equals
        if len(equals) > _EQUALS:
            return None
        found = []
        while len(equals):
            found.append(self._first_before(equals, front))
            equals = equals[equals != found[-1]]
        return np.array(found)

    def _is_told(self, front: Front) -> bool:
        self._tell()
        return self._ahead is not None or super()._is_told(front)

    def _take_in(self) -> None:
        self._tell()
        if self._ahead is None:
            super()._take_in()
