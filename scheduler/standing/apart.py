"""What is left of all hosts where filters must be asked for one request, but single out few rows.

Filters that keep the servers of a group together or apart treat all hosts alike that have nothing
to do with the group.  They are asked about the few that have, and about one of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from scheduler.concurrency import BREATHS
from scheduler.filters.chain import FilterCount, Note, rejections
from scheduler.hosts.candidates import Candidates, Scope
from scheduler.hosts.inputs import Apart
from scheduler.standing.classes import Standing
from scheduler.standing.verdicts import PASSES


@dataclass(slots=True)
class Left:
    """What the filters of a chain leave of all hosts."""

    #: How many.
    end: int
    counts: list[FilterCount]
    #: Rows removed for this request alone; what stands may be against them, too.
    gone: set[int]
    #: The only hosts left; None: all that pass by what stands, but those that are gone.
    few: Candidates | None = None
    #: Number of a filter, the reason for which it removed all that it was to be asked about, and
    #: the few rows for which that is not so.
    all_but: tuple[int, str, np.ndarray] | None = None


def singled_out(apart: Apart | None, scope: Scope, request: Any) -> tuple[list[int], int] | None:
    """The rows that may fare otherwise than all others, in order, and one of the others.

    None if that is not known, or there is no other.
    """
    if apart is None:
        return None
    rows, order = apart(scope.table, request), scope.table.order
    others = [row for row in order[: len(rows) + 1].tolist() if row not in rows]
    return (sorted(rows), others[0]) if others else None


def left_of_all(standing: Standing, scope: Scope, request: Any, note: Note | None) -> Left | None:
    """What the filters leave of all hosts; None if one cannot say whom it singles out."""
    asked = {}
    for step in standing.steps:
        if isinstance(step, int):
            known = singled_out(standing.apart[step], scope, request)
            if known is None:
                return None
            asked[step] = known
    run = _Run(standing, scope, request, note)
    for place, step in enumerate(standing.steps, 1):
        if isinstance(step, list):
            run.stand(step)
        else:
            run.ask(step, *asked[step])
        if run.left.few is not None:
            return _of_few(standing, run.left, run.left.few, request, note, place)
        if not run.left.end:
            run.left.few = Candidates(scope, np.zeros(0, dtype=np.int64))
            break
    return run.left


def _of_few(
    standing: Standing, left: Left, few: Candidates, request: Any, note: Note | None, place: int
) -> Left:
    """The same after the steps from *place* on, when there are but *few*."""
    if len(few):
        few, counts = standing.run(few, request, note, standing.steps[place:])
        left.counts += counts
    left.few, left.end = few, len(few)
    return left


class _Run:
    """Goes through the chain with the numbers of hosts, and with the few that are looked at."""

    def __init__(self, standing: Standing, scope: Scope, request: Any, note: Note | None) -> None:
        verdicts = standing.verdicts
        self._standing = standing
        self._is_first = True
        self._numbers = verdicts.numbers
        self._of_row = verdicts.of_row
        self._counts = verdicts.counts
        self._scope = scope
        self._request = request
        self._note = note
        self.left = Left(int(verdicts.counts.sum()), [], set())

    def stand(self, step: list[int]) -> None:
        """The filters *step* are neighbours whose verdicts stand."""
        if self._is_first:
            counts = self._standing.filter_counts()[: len(step)]
        else:
            counts = self._numbers.counted(self._counts, step, self.left.end)
        self._is_first = False
        self.left.counts += counts
        self.left.end = counts[-1].end

    def ask(self, number: int, rows: list[int], other: int) -> None:
        """Filter *number* is asked about those of *rows* that reach it, and about one *other*."""
        self._is_first = False
        few = [row for row in rows if self._reaches(row, number)]
        hosts = Candidates(self._scope, np.array([*few, other], dtype=np.int64))
        each, start, code_of_others = self._numbers.filters[number], self.left.end, None
        removed: dict[str, int] = {}
        gone: list[int] = []
        for reason, mask in rejections(each, hosts, self._request):  # type: ignore[arg-type]
            *of_few, of_others = mask.tolist()
            own = [row for row, is_removed in zip(few, of_few, strict=True) if is_removed]
            if own and self._note is not None:
                self._note(number, reason.code, np.array(own, dtype=np.int64))
            gone += own
            code_of_others = reason.code if of_others else code_of_others
            if count := len(own) + (start - len(few) if of_others else 0):
                removed[reason.code] = removed.get(reason.code, 0) + count
        BREATHS.take()
        self.left.end = start - sum(removed.values())
        self.left.counts.append(FilterCount(each.name, start, self.left.end, removed))
        if code_of_others is not None:
            self.left.all_but = number, code_of_others, np.array(few, dtype=np.int64)
            left = [row for row in few if row not in gone]
            self.left.few = Candidates(self._scope, np.array(left, dtype=np.int64))
        elif gone:
            self._remove(gone)

    def _reaches(self, row: int, number: int) -> bool:
        verdict = self._of_row.item(row)
        stands = verdict == PASSES or verdict > self._numbers.limit(number)
        return stands and row not in self.left.gone

    def _remove(self, rows: list[int]) -> None:
        """What stands against *rows* behind the filter that was asked does not count any more."""
        self._counts = self._counts.copy()
        for row in rows:
            self._counts[self._of_row[row]] -= 1
        self.left.gone.update(rows)
