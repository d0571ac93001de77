"""Running the configured filters over the candidates, counting what each removes and why."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from oslo_log import log as logging

from scheduler.concurrency import BREATHS
from scheduler.filters.base import BaseHostFilter, HostFilter, Reason, request_is_rebuild
from scheduler.hosts.candidates import Candidates
from scheduler.hosts.host_state import HostState
from scheduler.hosts.inputs import Inputs
from scheduler.hosts.table import HostTable

LOG = logging.getLogger(__name__)

Note = Callable[[int, str, np.ndarray], None]
"""Told of the filter's number in the chain, the reason code and the rows that it removes for it."""

#: Reason code of a filter that only says yes or no.
UNSPECIFIED = "unspecified"


@dataclass(frozen=True, slots=True)
class FilterCount:
    """One filter's effect: hosts before and after, and removed per reason code."""

    name: str
    start: int
    end: int
    removed: dict[str, int] = field(default_factory=dict)


class FilterChain:
    """The enabled filters in order."""

    def __init__(self, filters: Sequence[BaseHostFilter]) -> None:
        self.filters = tuple(filters)
        self._limiting = [
            each
            for each in self.filters
            if isinstance(each, HostFilter) and type(each).limits is not HostFilter.limits
        ]
        read = [Inputs.of(each) for each in self._limiting]
        #: What limits follow from, besides the request; None if a filter does not say.
        self._limits_read: list[str] | None = None
        if all(each is not None and each.limits is not None for each in read):
            names = [name for each in read for name in (each and each.limits) or ()]
            self._limits_read = list(dict.fromkeys(names))

    def run(
        self,
        hosts: Candidates,
        request: Any,
        index: int = 0,
        watch: Callable[[int, str, Candidates], None] | None = None,
        note: Note | None = None,
    ) -> tuple[Candidates, list[FilterCount]]:
        """Hosts left for instance number *index*, and the counts of the filters that ran.

        Stops at the filter that leaves nothing.  The removed counts of a filter always add up
        to ``start - end``.  *watch* is called with index, filter name and hosts left.
        """
        counts = []
        for number, each in enumerate(self.filters):
            if not each.run_filter_for_index(index):
                continue
            start = len(hosts)
            hosts, removed = apply(each, hosts, request, number, note)
            BREATHS.take()
            counts.append(FilterCount(each.name, start, len(hosts), removed))
            if watch is not None:
                watch(index, each.name, hosts)
            if not len(hosts):
                break
        log_counts(counts, request)
        return hosts, counts

    def limits(self, host_state: Any, request: Any) -> dict[str, Any]:
        """Limits that the filters put on *host_state*, those of row-by-row filters included."""
        limits: dict[str, Any] = {}
        rebuild = request_is_rebuild(request)
        for each in self._limiting:
            if each.RUN_ON_REBUILD or not rebuild:
                limits.update(each.limits(host_state, request))
        limits.update(host_state.limits)
        return limits

    @property
    def limits_stand(self) -> bool:
        """Whether picks of servers without cells and devices change no limits."""
        return self._limits_read is not None

    def limits_of_many(
        self, table: HostTable, states: Sequence[HostState], request: Any
    ) -> list[dict[str, Any]]:
        """``limits`` of each, where they stand; hosts that are alike share them."""
        rows = [state.row for state in states]
        columns = [table.column(name)[rows].tolist() for name in self._limits_read or ()]
        known: dict[Hashable, dict[str, Any]] = {}
        found = []
        for state, *values in zip(states, *columns, strict=True):
            key = (*values, id(state) if state.limits else None)
            limits = known.get(key)
            if limits is None:
                limits = known[key] = self.limits(state, request)
            found.append(limits)
        return found


def bypassed(each: BaseHostFilter, request: Any) -> bool:
    """Whether *each* is not asked, because the request only checks a rebuild in place."""
    return not each.RUN_ON_REBUILD and request_is_rebuild(request)


def is_columnar(each: BaseHostFilter) -> bool:
    """Whether what *each* does is all in its conditions."""
    kind = type(each)
    return (
        isinstance(each, HostFilter)
        and kind.host_passes is HostFilter.host_passes
        and kind.filter_all is BaseHostFilter.filter_all
    )


def apply(
    each: BaseHostFilter,
    hosts: Candidates,
    request: Any,
    number: int = 0,
    note: Note | None = None,
) -> tuple[Candidates, dict[str, int]]:
    """The hosts that *each*, which has that *number*, leaves; how many go per reason code."""
    if is_columnar(each):
        if bypassed(each, request):
            return hosts, {}
        return _apply_columns(each, hosts, request, number, note)  # type: ignore[arg-type]
    return _apply_rows(each, hosts, request, number, note)


def _apply_columns(
    each: HostFilter, hosts: Candidates, request: Any, number: int, note: Note | None
) -> tuple[Candidates, dict[str, int]]:
    gone = hosts.everything(False)
    removed: dict[str, int] = {}
    for reason, mask in rejections(each, hosts, request):
        gone |= mask
        removed[reason.code] = removed.get(reason.code, 0) + int(np.count_nonzero(mask))
        if note is not None:
            note(number, reason.code, hosts.rows[mask])
    return (hosts.take(~gone), removed) if removed else (hosts, removed)


def rejections(
    each: HostFilter, hosts: Candidates, request: Any
) -> Iterator[tuple[Reason, np.ndarray]]:
    """Per reason the mask of the hosts that *each* removes for it; every host at most once."""
    alive: np.ndarray | None = None
    for reason, satisfied in each.conditions(hosts, request):
        if len(satisfied) and satisfied[satisfied.argmin()]:  # quicker than all() of few
            continue
        removed = ~satisfied if alive is None else alive & ~satisfied
        if removed.any():
            alive = ~removed if alive is None else alive & satisfied
            yield reason, removed


def _apply_rows(
    each: BaseHostFilter, hosts: Candidates, request: Any, number: int, note: Note | None
) -> tuple[Candidates, dict[str, int]]:
    states: Iterable[Any] = hosts.states()
    if type(each).filter_all is BaseHostFilter.filter_all:
        states = BREATHS.between(states)
    passed = each.filter_all(states, request)
    rows = [] if passed is None else [state.row for state in passed]
    left = Candidates(hosts.scope, np.array(rows, dtype=np.int64))
    lost = len(hosts) - len(left)
    if lost and note is not None:
        note(number, UNSPECIFIED, hosts.rows[~np.isin(hosts.rows, left.rows)])
    return left, ({UNSPECIFIED: lost} if lost else {})


def log_counts(counts: Sequence[FilterCount], request: Any) -> None:
    """The lines that operators of Nova search for (filters page, section 3.3)."""
    if LOG.isEnabledFor(logging.DEBUG) and counts:
        LOG.debug("Starting with %d host(s)", counts[0].start)
        for count in counts:
            if count.end:
                LOG.debug("Filter %s returned %d host(s)", count.name, count.end)
    if counts and not counts[-1].end:
        LOG.info("Filter %s returned 0 hosts", counts[-1].name)
        LOG.info(
            "Filtering removed all hosts for the request with instance ID '%s'. Filter results: %s",
            request.instance_uuid,
            [f"{count.name}: (start: {count.start}, end: {count.end})" for count in counts],
        )
