"""What is written into the record of a decision while it is made, as that can be known only then.

It must cost next to nothing: references and a few numbers, no text, nothing per host.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from oslo_log import log as logging

from scheduler.drivers.ranking import Ranking
from scheduler.explain.before import explain_before
from scheduler.explain.detail import Detail
from scheduler.explain.record import FILTER, NO_SERVICE, NOT_OFFERED, WEIGH, DecisionRecord
from scheduler.explain.refusal import Refusal, examine
from scheduler.explain.top import Top
from scheduler.filters.base import BaseHostFilter
from scheduler.filters.chain import FilterChain, Note
from scheduler.hosts.candidates import Candidates
from scheduler.hosts.table import HostTable
from scheduler.standing import Left, OwnTotals, Standing
from scheduler.weights.weighing import Valued

LOG = logging.getLogger(__name__)

#: So many of the best hosts are noted with what their weights are made of.
TOP_HOSTS: Final = 3

Values = tuple[Sequence[str], Sequence[Any], Sequence[Any], Sequence[Any] | None]
"""What some totals are made of: names of weighers, raw values, multipliers, bounds."""


class Notes:
    """The first instance's part of *record*; what costs more only if the record wants detail."""

    def __init__(
        self, record: DecisionRecord, table: HostTable, filters: Sequence[BaseHostFilter]
    ) -> None:
        self.record = record
        self._filters = filters
        self._table = table
        self._ranking: Ranking | None = None
        self._values: Callable[[list[int]], Values] | None = None

    def begin(self, rows: np.ndarray) -> None:
        """Of all hosts only *rows* are considered."""
        record, table = self.record, self._table
        candidates = len(table.order)
        record.fleet = len(table)
        record.hosts_considered = len(rows)
        record.not_considered = {}
        if record.fleet > candidates:
            record.not_considered[NO_SERVICE] = record.fleet - candidates
        if candidates > len(rows):
            record.not_considered[NOT_OFFERED] = candidates - len(rows)
        record.filters = []

    def narrowed(self, hosts: Candidates, removed: dict[str, int]) -> None:
        """What the lists of the request have left."""
        record = self.record
        record.removed_before_filters = removed
        record.top = record.detail = record.refusal = None
        if record.before_filters:
            record.before_filters = []
        if record.wants_detail:
            record.detail = Detail(hosts.rows, self._filters, self._table.changes.position)

    def stood(self, standing: Standing) -> None:
        """There are results of an earlier request like this one."""
        detail = self.record.detail
        if detail is not None:
            detail.history, detail.numbers = standing.history, standing.verdicts.numbers
            detail.at = standing.history.position
            detail.position = self._table.changes.position

    @property
    def note(self) -> Note | None:
        """What filters that are asked tell of the rows they remove; None if nobody cares."""
        return None if self.record.detail is None else self.record.detail.note

    def scored(self, standing: Standing, ranking: Ranking) -> Ranking:
        """The totals are those that stand."""
        scores = standing.scores
        if self.record.detail is not None:
            self.record.detail.bounds = scores.bounds

        def values(few: list[int]) -> Values:
            own = scores.of_one(few[0]) if len(few) == 1 else scores.few(np.array(few))
            return scores.names, *own, scores.bounds

        self._ranking, self._values = ranking, values
        return ranking

    def left(self, left: Left) -> None:
        """Filters were asked about few rows."""
        if self.record.detail is not None:
            self.record.detail.all_but = left.all_but

    def added_up(self, totals: OwnTotals, ranking: Ranking) -> Ranking:
        """Weighers were asked about few rows; what they said counts with what stands."""
        if self.record.detail is not None:
            self.record.detail.bounds = totals.bounds
            self.record.detail.asked = tuple(totals.asked.values())
        self._ranking, self._values = ranking, totals.numbers_of
        return ranking

    def weighed(self, valued: list[Valued], rows: np.ndarray, ranking: Ranking) -> Ranking:
        """The totals of *rows* are made of *valued*, in their order."""
        if self.record.detail is not None:
            self.record.detail.valued = valued

        def values(few: list[int]) -> Values:
            places = [int(np.flatnonzero(rows == row)[0]) for row in few]
            some = [each.some(np.array(places, dtype=np.int64)) for each in valued]
            bounds = [each.bounds for each in some]
            raws, multipliers = [each.raw for each in some], [each.multiplier for each in some]
            return [each.name for each in some], raws, multipliers, bounds

        self._ranking, self._values = ranking, values
        return ranking

    def top(self, best: Iterator[int], num_alternates: int) -> Iterator[int]:
        """Note the first of *best*, which are looked up now in any case; gives the same again."""
        ranking = self._ranking
        if self.record.detail is None or ranking is None or self._values is None:
            return best
        rows = list(itertools.islice(best, TOP_HOSTS if num_alternates else 1))
        if not rows:
            return best
        text = self._table.text
        pairs = tuple([(text(row, "host"), text(row, "nodename")) for row in rows])
        self.record.top = Top(pairs, tuple(ranking.totals_of(rows)), *self._values(rows))
        return itertools.chain(rows, best)

    def refused(self, hosts: Candidates, request: Any, index: int, chain: FilterChain) -> None:
        """None of *hosts*, which the lists of *request* have left, could be given out.

        Whatever goes wrong with explaining that, the answer stays what it is.
        """
        try:
            self._examine(hosts, request, index, chain)
        except Exception:
            LOG.exception("The refusal of request %s cannot be explained", self.record.request_id)

    def _examine(self, hosts: Candidates, request: Any, index: int, chain: FilterChain) -> None:
        record, detail = self.record, self.record.detail
        if detail is None:
            return
        record.before_filters = explain_before(record, hosts.table, request)
        if not len(hosts) or record.filters_skipped:
            return
        if index:
            record.refusal = _of_later(hosts, request, index, chain)
            return
        is_of_all = not detail.removed and detail.all_but is None
        is_of_class = is_of_all and detail.rows is hosts.table.order
        history = detail.history if is_of_class else None
        if history is not None and history.worked_out and history.worked_out[0] == detail.at:
            record.refusal = history.worked_out[1]
            return
        record.refusal = examine(detail.filters, hosts, request, detail.verdicts() or [])
        if history is not None and record.refusal.is_lasting:
            history.worked_out = detail.at, record.refusal

    def spent(self, began: float, weighing_seconds: float = 0.0) -> float:
        """Filtering since *began*, but for the time within it that went to weighers; now."""
        now = time.perf_counter()
        stages = self.record.stages_ms
        filtering = now - began - weighing_seconds
        stages[FILTER] = stages.get(FILTER, 0.0) + filtering * 1000
        if weighing_seconds:
            stages[WEIGH] = stages.get(WEIGH, 0.0) + weighing_seconds * 1000
        return now


def _of_later(hosts: Candidates, request: Any, index: int, chain: FilterChain) -> Refusal:
    """Asked anew, of all hosts, now that the instances before have their places."""
    verdicts: list[tuple[tuple[int, str], np.ndarray]] = []
    _left, counts = chain.run(
        hosts, request, note=lambda number, code, rows: verdicts.append(((number, code), rows))
    )
    refusal = examine(chain.filters, hosts, request, verdicts, index)
    refusal.filters = counts
    return refusal
