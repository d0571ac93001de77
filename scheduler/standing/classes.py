"""Classes of requests, what stands for each, and how much memory all of it may take."""

from __future__ import annotations

import functools
import operator
import time
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from oslo_log import log as logging

from scheduler import errors
from scheduler.concurrency import BREATHS
from scheduler.filters.base import BaseHostFilter, request_is_rebuild
from scheduler.filters.chain import FilterCount, Note, apply
from scheduler.hosts.candidates import Candidates, Scope
from scheduler.hosts.inputs import Apart, nothing
from scheduler.hosts.liveness import Liveness
from scheduler.hosts.table import HostTable
from scheduler.semantics import Semantics
from scheduler.standing.foresight import Foresight
from scheduler.standing.history import History
from scheduler.standing.scores import NO_CANDIDATE, Scores
from scheduler.standing.verdicts import (
    BYPASSED,
    PASSES,
    PICKED,
    Read,
    ReasonNumbers,
    Verdicts,
    read_by,
)
from scheduler.weights.base import BaseHostWeigher

LOG = logging.getLogger(__name__)

#: Beyond this many changed rows, or this part of all, everything is asked anew.
_FEW, _PART = 64, 4
#: So many hosts are weighed as quickly as it is found out whether what stands holds for them.
QUICKLY_WEIGHED = 64
#: Answers kept for costly questions; beyond, they are asked anew.
_ANSWERS = 100_000


class Standing:
    """What stands for one class of requests.

    *filters* are those of the chain that run: the columns each reads, 0 if it is bypassed, None if
    it must be asked for every request.  *scores* likewise.  *apart* says of all filters and then of
    all weighers whom those single out that must be asked.
    """

    def __init__(
        self,
        numbers: ReasonNumbers,
        filters: Mapping[int, int | None],
        scores: Scores,
        apart: Sequence[Apart | None] = (),
        *,
        remembers: bool,
    ) -> None:
        asked = {index: reads for index, reads in filters.items() if reads}
        self.verdicts = Verdicts(numbers, asked)
        self.scores = scores
        self.apart = apart
        self.steps = _steps(filters)
        self.position = -1
        self._interest = self.verdicts.interest | scores.reads
        self._counts: list[FilterCount] | None = None
        self._foresight: Foresight | None = None
        self._own_pick: int | None = None
        #: How long the weighers were asked when it was last brought up to date.
        self.weighing_seconds = 0.0
        #: What stood before, for whoever wants to know later.
        self.history = History(self.verdicts.of_row, scores)
        self._remembers = remembers

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to ask."""
        return self.scores.are_complete and all(isinstance(step, list) for step in self.steps)

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        return self.verdicts.nbytes + self.scores.nbytes

    def totals(self) -> np.ndarray:
        """The total weight of every row, if nothing is left to ask; not a copy."""
        return self.scores.totals(self.verdicts.passing, self.verdicts.num_passing)

    def filter_counts(self) -> list[FilterCount]:
        """What each filter left and removed, as if those that are left to ask were not there."""
        if self._counts is None:
            counts = self.verdicts.counts
            indices = [index for step in self.steps if isinstance(step, list) for index in step]
            self._counts = self.verdicts.numbers.counted(counts, indices, int(counts.sum()))
        return self._counts

    def totals_within(self, rows: np.ndarray) -> np.ndarray | None:
        """The total weight of every row if only *rows* are weighed.

        None if that differs, or if it is quicker to weigh them, which are few.
        """
        if len(rows) <= QUICKLY_WEIGHED:
            return None
        left = np.zeros(len(self.verdicts.of_row), dtype=np.bool_)
        left[rows] = True
        if not self.scores.hold_within(left, self.verdicts.passing):
            return None
        return np.where(left, self.totals(), NO_CANDIDATE)

    def run(
        self,
        hosts: Candidates,
        request: Any,
        note: Note | None = None,
        steps: Sequence[list[int] | int] | None = None,
    ) -> tuple[Candidates, list[FilterCount]]:
        """``FilterChain.run`` on some candidates, in which only what is left to ask is asked.

        *steps* are those to take, if not all.
        """
        found: list[FilterCount] = []
        numbers = self.verdicts.numbers
        for step in self.steps if steps is None else steps:
            if isinstance(step, list):
                hosts, counts = self._left_by(step, hosts)
                found += counts
            else:
                each = numbers.filters[step]
                if not each.run_filter_for_index(0):
                    continue
                left, removed = apply(each, hosts, request, step, note)
                BREATHS.take()
                found.append(FilterCount(each.name, len(hosts), len(left), removed))
                hosts = left
            if not len(hosts):
                break
        return hosts, found

    def _left_by(self, step: list[int], hosts: Candidates) -> tuple[Candidates, list[FilterCount]]:
        """What the filters *step*, which are neighbours, leave of *hosts*."""
        numbers, counts = self.verdicts.numbers, self.verdicts.counts
        first, last = numbers.limit(step[0]), numbers.limit(step[-1] + 1)
        if not counts[first + 1 : last + 1].any():  # they refuse nobody
            return hosts, numbers.counted(counts, step, len(hosts))
        numbered = self.verdicts.of_row[hosts.rows]
        if hosts.rows is not hosts.table.order:
            counts = np.bincount(numbered, minlength=len(numbers))
        found = numbers.counted(counts, step, len(hosts))
        return hosts.take((numbered == PASSES) | (numbered > last)), found

    def bring_up_to_date(self, scope: Scope, request: Any) -> None:
        """Take in what changed in the table; after an exception nothing stands any more."""
        self.weighing_seconds = 0.0
        table = scope.table
        changes = table.changes.since(self.position, self._interest) if self.position >= 0 else None
        most = max(_FEW, len(table) // _PART)
        if changes is None or len(changes) > most or len(self.verdicts.of_row) != table.capacity:
            self._work_out(scope, request)
        elif self._is_own_pick(changes):
            self._take(scope, request, next(iter(changes)))
        elif changes:
            if self._foresight is not None:
                self._foresight.forget(changes)
            rows = np.fromiter(changes.keys(), dtype=np.int64, count=len(changes))
            changed = functools.reduce(operator.or_, changes.values())
            self._work_out_again(scope, request, rows, changed)
        self.position = table.changes.position

    def picked(self, row: int, amounts: Mapping[str, int] | None) -> None:
        """A request of this class got *row*, and has taken *amounts* of its columns if known."""
        self._own_pick = None
        if amounts is not None:
            self._own_pick = row
            self._foresight = self._foresight or Foresight(amounts)

    def _is_own_pick(self, changes: Mapping[int, int]) -> bool:
        """Whether all that happened is that the last pick has got its instance, more or less."""
        if len(changes) != 1 or self._foresight is None:
            return False
        [(row, changed)] = changes.items()
        passed = self.verdicts.of_row[row] == PASSES
        return bool(row == self._own_pick and passed and not changed & ~PICKED)

    def _take(self, scope: Scope, request: Any, row: int) -> None:
        if self._foresight is None:
            return
        verdict, raws = self._foresight.of(scope, request, row, self.verdicts, self.scores)
        if self._remembers:
            self.history.note_pick(row)
        self.scores.put(row, raws if verdict == PASSES else None)
        if verdict != PASSES:
            self.verdicts.put(row, verdict)
            self._counts = None

    def _work_out(self, scope: Scope, request: Any) -> None:
        self._foresight = None
        self.verdicts.judge_all(scope, request)
        self._counts = None
        self.scores = self.scores.anew(scope.table.capacity)
        self.history.is_live = False
        self.history = History(self.verdicts.of_row, self.scores)
        rows = scope.table.order
        began = time.perf_counter()
        self.scores.weigh_all(scope, request, rows[self.verdicts.of_row[rows] == PASSES])
        self.weighing_seconds = time.perf_counter() - began

    def _work_out_again(self, scope: Scope, request: Any, rows: np.ndarray, changed: int) -> None:
        before, masks = self.verdicts.of_row[rows], None
        passed = not before.any()
        if self._remembers:
            are_picks = self.scores.multipliers_stand and not changed & ~PICKED
            self.history.note(rows, before, only_picks=passed and are_picks)
        after = self.verdicts.judge_changed(scope, request, rows, changed)
        if after is not None:
            self._counts = None
        if after is not None or not passed:
            masks = before == PASSES, (before if after is None else after) == PASSES
        if masks is None or masks[0].any() or masks[1].any():
            began = time.perf_counter()
            self.scores.weigh_changed(scope, request, rows, changed, masks)
            self.weighing_seconds = time.perf_counter() - began


def _steps(filters: Mapping[int, int | None]) -> list[list[int] | int]:
    """Filters whose verdicts stand, as runs of neighbours, and between them those to be asked."""
    steps: list[list[int] | int] = []
    for index, reads in filters.items():
        if reads is None:
            steps.append(index)
        elif steps and isinstance(steps[-1], list):
            steps[-1].append(index)
        else:
            steps.append([index])
    return steps


def _is_constant(read: Read | None) -> bool:
    """Whether a part that reads this is told nothing of the request."""
    return read is not None and read.of_request is nothing


class StandingResults:
    """What stands for the latest classes of requests to one chain and its weighers.

    The least recently used make room when all together take more than *limit_bytes*.
    """

    def __init__(
        self,
        table: HostTable,
        filters: Sequence[BaseHostFilter],
        weighers: Sequence[BaseHostWeigher],
        chosen: Semantics,
        service_down_time_seconds: float,
        limit_bytes: int,
        *,
        remembers: bool = True,
    ) -> None:
        """With *remembers*, what stood at an earlier moment can be found out for a while."""
        self.table = table
        self.filters = tuple(filters)
        self.weighers = tuple(weighers)
        self.liveness = Liveness(table, service_down_time_seconds)
        self._semantics = chosen
        self._limit_bytes = limit_bytes
        self._remembers = remembers
        self._numbers = ReasonNumbers(self.filters)
        self._parts = [(each, read_by(each)) for each in (*self.filters, *self.weighers)]
        self._apart = [None if read is None else read.apart for _part, read in self._parts]
        #: By place what the parts read of requests, None where that is another for each.
        self._constant: list[Hashable] = [
            () if _is_constant(r) else None for _part, r in self._parts
        ]
        self._asked = [
            (place, read.of_request)
            for place, (_part, read) in enumerate(self._parts)
            if read is not None and not _is_constant(read)
        ]
        self._bypassed = frozenset(
            place
            for place, (part, read) in enumerate(self._parts)
            if read and isinstance(part, BaseHostFilter) and not part.RUN_ON_REBUILD
        )
        self._standing: OrderedDict[Hashable, Standing] = OrderedDict()
        self._answers: dict[Hashable, dict[tuple[Any, ...], Any]] = {}
        #: The class whose results are being brought up to date.
        self._at_work: Hashable = None

    def __len__(self) -> int:
        return len(self._standing)

    @property
    def nbytes(self) -> int:
        """Memory taken by all that stands."""
        return sum(each.nbytes for each in self._standing.values())

    def of(self, request: Any, scope: Scope) -> Standing | None:
        """What stands for the class of *request*, up to date; None if something goes wrong.

        It then goes wrong, and is told, where the hosts are looked at for this request alone.
        """
        self.liveness.check(scope.now)
        self._share_answers(scope)
        self._at_work = None
        try:
            standing, is_new = self._found(self._class_of(request))
            standing.bring_up_to_date(scope, request)
        except errors.NovaException as error:
            LOG.debug("Nothing can stand for this request: %s", error)
            self._forget(self._at_work)
            return None
        except Exception:
            LOG.warning("Nothing can stand for this request", exc_info=True)
            self._forget(self._at_work)
            return None
        if is_new:
            self._make_room()
        return standing

    def _found(self, key: tuple[Hashable, ...]) -> tuple[Standing, bool]:
        """What stands for the class *key*, and whether it is new."""
        standing = self._standing.get(key)
        is_new = standing is None
        if standing is None:
            standing = self._standing[key] = self._new(key)
        self._standing.move_to_end(key)
        self._at_work = key
        return standing, is_new

    def _share_answers(self, scope: Scope) -> None:
        if sum(map(len, self._answers.values())) > _ANSWERS:
            self._answers.clear()
        scope.answers = self._answers

    def _class_of(self, request: Any) -> tuple[Hashable, ...]:
        """Per part what it reads of the request; None if it must be asked for this request."""
        rebuild = request_is_rebuild(request)
        values = self._constant.copy()
        for place, of_request in self._asked:
            if not (rebuild and place in self._bypassed):
                values[place] = of_request(request)
        if rebuild:
            for place in self._bypassed:
                values[place] = BYPASSED
        return tuple(values)

    def _new(self, key: tuple[Hashable, ...]) -> Standing:
        reads = [
            None if value is None or read is None else read.bits_for(value)
            for value, (_part, read) in zip(key, self._parts, strict=True)
        ]
        num_filters = len(self.filters)
        weighers = list(zip(self.weighers, reads[num_filters:], strict=True))
        filters, scores = dict(enumerate(reads[:num_filters])), Scores(weighers, self._semantics)
        return Standing(self._numbers, filters, scores, self._apart, remembers=self._remembers)

    def _make_room(self) -> None:
        while len(self._standing) > 1 and self.nbytes > self._limit_bytes:
            self._forget(next(iter(self._standing)))

    def _forget(self, key: Hashable) -> None:
        standing = self._standing.pop(key, None)
        if standing is not None:
            standing.history.is_live = False
