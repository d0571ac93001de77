"""Where one host fell out of a decision, or which place it had."""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler import semantics
from scheduler.explain.before import TEXTS
from scheduler.explain.detail import Detail, Ranked
from scheduler.explain.record import NO_SERVICE, NOT_OFFERED, DecisionRecord
from scheduler.explain.refusal import failures, told
from scheduler.explain.top import part_of
from scheduler.filters.base import BaseHostFilter
from scheduler.hosts import columns, selector
from scheduler.hosts.candidates import Candidates, Scope

#: Whether what is told is of the moment of the decision.
THEN, NOW = "decision", "now"


def on_host(record: DecisionRecord, driver: Any, host: str) -> list[dict[str, Any]]:
    """Per node of *host* what became of it; empty if there is no such host now.

    The caller holds the decision lock.  ``as_of`` says of which moment the verdict is, and
    ``numbers_of`` the numbers: where the decision is no longer remembered, or the host has changed
    since, they are those of now.
    """
    table = driver.host_manager.table
    return [_Look(record, driver, row).told() for row in table.rows_of_host.get(host, ())]


class _Look:
    """One row, as a decision saw it."""

    def __init__(self, record: DecisionRecord, driver: Any, row: int) -> None:
        self.record = record
        self.row = row
        manager = driver.host_manager
        self.table = manager.table
        policy = getattr(getattr(driver, "settings", None), "policy", None)
        detail = record.detail
        if detail is not None and self.table.given_at[row] > detail.position:
            detail = None
        self.detail: Detail | None = detail
        self.filters: tuple[BaseHostFilter, ...] = ()
        if detail is not None:
            self.filters = tuple(detail.filters)
        elif policy is not None:
            self.filters = policy.chain.filters
        self.semantics = semantics.CURRENT if policy is None else policy.semantics
        down_time = 60.0 if policy is None else policy.service_down_time_seconds
        self.scope = Scope(self.table, manager.clock(), down_time)

    def told(self) -> dict[str, Any]:
        """All there is to say."""
        value = self.table.value
        pair = value(self.row, "host"), value(self.row, "nodename")
        found: dict[str, Any] = {
            "host": pair[0],
            "node": pair[1],
            "chosen": self.record.chosen.count(pair),
            "alternate": any(pair in row for row in self.record.alternates),
            "as_of": THEN,
            "numbers_of": NOW if self._has_changed() else THEN,
            "status": "passed",
        }
        early = self._never_evaluated()
        if early is not None:
            return {**found, "status": "never_evaluated", "reason": early, "text": TEXTS[early]}
        verdicts = None if self.detail is None else self.detail.verdicts()
        if self.detail is None or verdicts is None:
            return {**found, "as_of": NOW, **self._of_now()}
        for (number, code), rows in verdicts:
            if self.row in rows:
                return {**found, "status": "removed", **self._removed(number, code)}
        ranked = self.detail.ranked()
        return found if ranked is None else {**found, **_place(ranked, self.row)}

    def _never_evaluated(self) -> str | None:
        """Why no filter was asked about the host; its name and cell do not change."""
        if not self.table.column("has_service")[self.row]:
            return NO_SERVICE
        request, detail = self.record.request, self.detail
        if request is None or (detail is not None and self.row in detail.rows):
            return None
        alone = Candidates(self.scope, np.array([self.row], dtype=np.int64))
        removed = selector.narrow(alone, request, self.semantics).removed
        if detail is not None and not removed:
            return NOT_OFFERED
        return next(iter(removed), None)

    def _removed(self, number: int, code: str) -> dict[str, Any]:
        each, request = self.filters[number], self.record.request
        texts = {reason.code: reason.text for reason in getattr(each, "reasons", ())}
        wanted, found = told(each, code, self.scope.state(self.row), request)
        others = failures(self.filters, self.scope, [self.row], request)[self.row]
        return {
            "filter": each.name,
            "reason": code,
            "text": texts.get(code, "does not pass"),
            "wanted": wanted,
            "found": found,
            "also_fails": [self.filters[n].name for n, _code in others if n != number],
        }

    def _of_now(self) -> dict[str, Any]:
        """What the filters say of the host as it is now."""
        now = {"numbers_of": NOW}
        if self.record.request is None or not self.filters:
            return {**now, "status": "unknown"}
        found = failures(self.filters, self.scope, [self.row], self.record.request)[self.row]
        if not found:
            return {**now, "status": "passed"}
        return {**now, "status": "removed", **self._removed(*found[0])}

    def _has_changed(self) -> bool:
        if self.detail is None:
            return True
        changed = self.table.changes.since(self.detail.position, columns.EVERYTHING)
        return changed is None or self.row in changed


def _place(ranked: Ranked, row: int) -> dict[str, Any]:
    """Rank and weights of a host that passed."""
    [place] = np.flatnonzero(ranked.rows == row)[:1].tolist() or [None]
    if place is None:
        return {}
    only = [each.some(np.array([place])) for each in ranked.valued if each.bounds]
    return {
        "rank": place + 1,
        "of": len(ranked.rows),
        "total": float(ranked.totals[place]),
        "weighers": [part_of(each, 0) for each in only],
    }
