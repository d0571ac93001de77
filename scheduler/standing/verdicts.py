"""What the filters said of every host: the first reason against it, if there is one."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scheduler.filters.base import BaseHostFilter, HostFilter
from scheduler.filters.chain import FilterCount, is_columnar, rejections
from scheduler.hosts import columns
from scheduler.hosts.candidates import Candidates, OneCandidate, Scope
from scheduler.hosts.inputs import Apart, Inputs

#: Verdicts that are no reasons: the host passes; there is no such host.
PASSES, ABSENT = 0, -1
_REASONS = 32
#: What a filter says of the request when it is not asked at all.
BYPASSED = "bypassed"
PRESENCE = columns.BITS[columns.PRESENCE]
PICKED = columns.bits(columns.ADDED_BY_PICKS)


class ReasonNumbers:
    """Numbers for the reasons of a chain of filters; those of one filter are together.

    Filter *i* has the numbers above ``limit(i)`` up to ``limit(i + 1)``.
    """

    def __init__(self, filters: Sequence[BaseHostFilter]) -> None:
        self.filters = filters
        #: Those that calculate with single numbers as well.
        self.plain = frozenset(n for n, each in enumerate(filters) if is_plain(each))
        self._numbers: list[dict[str, int]] = [{} for _ in filters]
        for index, each in enumerate(filters):
            for reason in getattr(each, "reasons", ()):
                self.number(index, reason.code)

    @staticmethod
    def limit(index: int) -> int:
        """The number above which those of filter number *index* begin."""
        return index * _REASONS

    def __len__(self) -> int:
        return self.limit(len(self.filters)) + 1

    def number(self, index: int, code: str) -> int:
        """The number of the reason *code* of filter number *index*."""
        known = self._numbers[index]
        if code not in known:
            if len(known) == _REASONS:
                raise ValueError(f"{self.filters[index].name} has more than {_REASONS} reasons")
            known[code] = self.limit(index) + 1 + len(known)
        return known[code]

    def meaning(self, number: int) -> tuple[int, str]:
        """The number of the filter and the reason code that *number* stands for."""
        index = (number - 1) // _REASONS
        codes = {own: code for code, own in self._numbers[index].items()}
        return index, codes[number]

    def counted(self, counts: np.ndarray, indices: Iterable[int], start: int) -> list[FilterCount]:
        """The effect of the filters *indices* on *start* hosts, up to the one that leaves none."""
        numbers = counts.tolist()
        found = []
        for index in indices:
            known = self._numbers[index].items()
            removed = {code: numbers[number] for code, number in known if numbers[number]}
            end = start - sum(removed.values()) if removed else start
            found.append(FilterCount(self.filters[index].name, start, end, removed))
            start = end
            if not end:
                break
        return found


@dataclass(frozen=True, slots=True)
class Read:
    """What a filter or weigher reads: columns, as bits, and a value of the request.

    A filter that is *idle* for a request, as that value says, reads nothing.  *apart* names the
    rows that requests make a difference for of which it reads more than that.
    """

    bits: int
    of_request: Callable[[Any], Hashable | None]
    idle: Hashable = None
    apart: Apart | None = None

    def bits_for(self, value: Hashable) -> int:
        """The columns that are read for requests with that *value*."""
        return 0 if value is BYPASSED or value == self.idle else self.bits


def read_by(part: Any) -> Read | None:
    """What *part* reads; None if its results cannot be kept."""
    declared = Inputs.of(part)
    if declared is None or (isinstance(part, BaseHostFilter) and not _runs_as_usual(part)):
        return None
    bits = columns.bits(declared.columns) | PRESENCE
    return Read(bits, declared.of_request, declared.idle, declared.apart)


def is_plain(part: Any) -> bool:
    """Whether *part* calculates with single numbers in place of columns, too."""
    declared = Inputs.of(part)
    return declared is not None and declared.plain


def _runs_as_usual(each: BaseHostFilter) -> bool:
    runs = type(each).run_filter_for_index is BaseHostFilter.run_filter_for_index
    return runs and is_columnar(each)


class Verdicts:
    """The verdicts of some filters of a chain on every row, and how many rows have each."""

    def __init__(self, numbers: ReasonNumbers, reads: Mapping[int, int]) -> None:
        """*reads* gives, by the number of each filter that is asked, the columns it reads."""
        self.numbers = numbers
        self.reads = reads
        self.of_row = np.zeros(0, dtype=np.int16)
        self.counts = np.zeros(len(numbers), dtype=np.int64)
        self._passing: np.ndarray | None = None

    @property
    def num_passing(self) -> int:
        """How many hosts pass."""
        return int(self.counts[PASSES])

    @property
    def passing(self) -> np.ndarray:
        """Mask of the rows that pass; to be read only."""
        if self._passing is None:
            self._passing = self.of_row == PASSES
        return self._passing

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        return self.of_row.nbytes + self.counts.nbytes

    @property
    def interest(self) -> int:
        """Bits of all columns that count."""
        return functools.reduce(operator.or_, self.reads.values(), PRESENCE)

    def of_later_instances(self) -> Verdicts:
        """The filters that run for every instance, on the hosts that pass for the first."""
        filters = self.numbers.filters
        reads = {
            index: read
            for index, read in self.reads.items()
            if not filters[index].run_filter_once_per_request
        }
        later = Verdicts(self.numbers, reads)
        later.of_row = np.where(self.of_row == PASSES, PASSES, ABSENT).astype(np.int16)
        later.counts[PASSES] = self.counts[PASSES]
        return later

    def judged(self, hosts: Candidates, request: Any) -> np.ndarray:
        """The verdicts on *hosts* by the filters that depend on what picks change."""
        return self._judged(hosts, request, [i for i, read in self.reads.items() if read & PICKED])

    def judged_alone(self, host: OneCandidate, request: Any) -> int:
        """The same of one host."""
        for index, read in self.reads.items():
            if not read & PICKED:
                continue
            each: HostFilter = self.numbers.filters[index]  # type: ignore[assignment]
            if index in self.numbers.plain:
                for reason, is_satisfied in each.conditions(host, request):
                    if not is_satisfied:
                        return self.numbers.number(index, reason.code)
            else:
                found = self._judged(Candidates(host.scope, host.rows), request, [index])
                if found[0] != PASSES:
                    return int(found[0])
        return PASSES

    def put(self, row: int, verdict: int) -> None:
        """Set the verdict on a row that passed."""
        self.counts[PASSES] -= 1
        self.counts[verdict] += verdict != ABSENT
        self.of_row[row] = verdict
        self._passing = None

    def judge_all(self, scope: Scope, request: Any) -> None:
        """Ask about every candidate."""
        rows = scope.table.order
        self.of_row = np.full(scope.table.capacity, ABSENT, dtype=np.int16)
        self.of_row[rows] = self._judged(Candidates(scope, rows), request, self.reads)
        self.counts = np.bincount(self.of_row[rows], minlength=len(self.numbers))
        self._passing = None

    def judge_changed(
        self, scope: Scope, request: Any, rows: np.ndarray, changed: int
    ) -> np.ndarray | None:
        """Ask again about *rows*, of which the columns *changed* (bits) are no longer the same.

        Gives the verdicts, or None if all are what they were.
        """
        affected = [index for index, read in self.reads.items() if read & changed]
        if not affected and not changed & PRESENCE:
            return None
        before = self.of_row[rows]
        after = self._judged_again(scope, request, rows, before, affected, changed)
        if (before == after).all():
            return None
        self.of_row[rows] = after
        self._passing = None
        size = len(self.numbers)
        self.counts -= np.bincount(before[before != ABSENT], minlength=size)
        self.counts += np.bincount(after[after != ABSENT], minlength=size)
        return after

    def _judged_again(
        self,
        scope: Scope,
        request: Any,
        rows: np.ndarray,
        before: np.ndarray,
        affected: list[int],
        together: int,
    ) -> np.ndarray:
        """Filters that cannot have changed their mind are not asked.

        What passed is asked about by those affected alone; what was refused before the first of
        those stays refused.
        """
        if together & PRESENCE:
            there = scope.table.column("has_service")[rows]
            after = np.where(there, before, ABSENT).astype(np.int16)
            asked = np.flatnonzero(there)
            after[asked] = self._judged(Candidates(scope, rows[asked]), request, self.reads)
            return after
        if not before.any():  # all passed
            return self._judged(Candidates(scope, rows), request, affected)
        after = before.copy()
        passed = np.flatnonzero(before == PASSES)
        if len(passed):
            after[passed] = self._judged(Candidates(scope, rows[passed]), request, affected)
        refused = np.flatnonzero(before > ReasonNumbers.limit(affected[0]))
        if len(refused):
            later = [index for index in self.reads if index >= affected[0]]
            after[refused] = self._judged(Candidates(scope, rows[refused]), request, later)
        return after

    def _judged(self, hosts: Candidates, request: Any, indices: Iterable[int]) -> np.ndarray:
        found = np.zeros(len(hosts), dtype=np.int16)  # all pass
        places: np.ndarray | None = None
        for index in indices:
            if not len(hosts):
                break
            each = self.numbers.filters[index]
            gone = None
            for reason, removed in rejections(each, hosts, request):  # type: ignore[arg-type]
                if places is None:
                    places = np.arange(len(hosts))
                found[places[removed]] = self.numbers.number(index, reason.code)
                gone = removed if gone is None else gone | removed
            if gone is not None and places is not None:
                places, hosts = places[~gone], hosts.take(~gone)
        return found
