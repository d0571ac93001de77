"""Running the configured filters over the candidates, counting what each removes and why."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scheduler.filters.base import BaseHostFilter, HostFilter, Reason, request_is_rebuild
from scheduler.hosts.candidates import Candidates

LOG = logging.getLogger(__name__)

#: Reason code of a filter that only says yes or no.
UNSPECIFIED = "unspecified"

Note = Callable[[int, str, np.ndarray], None]
"""Told of the filter's number in the chain, the reason code and the rows that it removes for it."""


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
        self._plan = [(n, each, each.name, is_columnar(each)) for n, each in enumerate(filters)]
        self._limiting = [
            each
            for each in self.filters
            if isinstance(each, HostFilter) and type(each).limits is not HostFilter.limits
        ]

    def run(
        self,
        hosts: Candidates,
        request: Any,
        index: int = 0,
        note: Note | None = None,
        after: Callable[[str], None] | None = None,
    ) -> tuple[Candidates, list[FilterCount]]:
        """Hosts left for instance number *index*, and the counts of the filters that ran.

        Stops at the filter that leaves nothing.  The removed counts of a filter always add up
        to ``start - end``.  *after* is called with the name of each filter that has run.
        """
        counts = []
        is_rebuild = request_is_rebuild(request)
        for number, each, name, columnar in self._plan:
            if index and not each.run_filter_for_index(index):
                continue
            start = len(hosts)
            removed: dict[str, int] = {}
            if not columnar:
                hosts, removed = _apply_rows(each, hosts, request, number, note)
            elif each.RUN_ON_REBUILD or not is_rebuild:
                hosts, removed = _apply_columns(each, hosts, request, number, note)
            counts.append(FilterCount(name, start, len(hosts), removed))
            if after is not None:
                after(name)
            if not len(hosts):
                break
        log_counts(counts, request)
        return hosts, counts

    @property
    def asks_only_columns(self) -> bool:
        """Whether all filters that run for later instances are written over columns."""
        return all(
            columnar or not each.run_filter_for_index(1) for _, each, _, columnar in self._plan
        )

    def passing(self, hosts: Candidates, request: Any) -> np.ndarray:
        """Mask of those of *hosts* that pass all filters of later instances, which are columnar."""
        passing = hosts.everything(True)
        for _number, each, _name, columnar in self._plan:
            if not columnar or not each.run_filter_for_index(1) or bypassed(each, request):
                continue
            for _reason, satisfied in each.conditions(hosts, request):  # type: ignore[attr-defined]
                passing &= satisfied
        return passing

    def limits(self, host_state: Any, request: Any) -> dict[str, Any]:
        """Limits that the filters put on *host_state*, those of row-by-row filters included."""
        limits: dict[str, Any] = {}
        rebuild = request_is_rebuild(request)
        for each in self._limiting:
            if each.RUN_ON_REBUILD or not rebuild:
                limits.update(each.limits(host_state, request))
        limits.update(host_state.limits)
        return limits


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


def _apply_columns(
    each: Any, hosts: Candidates, request: Any, number: int, note: Note | None
) -> tuple[Candidates, dict[str, int]]:
    alive: np.ndarray | None = None
    removed: dict[str, int] = {}
    for reason, gone in rejections(each, hosts, request):
        alive = ~gone if alive is None else alive & ~gone
        removed[reason.code] = removed.get(reason.code, 0) + int(np.count_nonzero(gone))
        if note is not None:
            note(number, reason.code, hosts.rows[gone])
    return (hosts, removed) if alive is None else (hosts.take(alive), removed)


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
    passed = each.filter_all(hosts.states(), request)
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
