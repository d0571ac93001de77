"""Where one host fell out of a decision, or which place it had."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from scheduler import semantics
from scheduler.engine.evaluation import NOT_ASKED, PASSES, Part
from scheduler.engine.record import (
    NO_SERVICE,
    NOT_OFFERED,
    DecisionRecord,
    Verdicts,
    share_of,
)
from scheduler.explain.before import TEXTS
from scheduler.explain.refusal import NOW, THEN, Closest, failures, told
from scheduler.filters.base import BaseHostFilter
from scheduler.hosts import selector
from scheduler.hosts.candidates import Candidates, Scope
from scheduler.hosts.table import HostTable


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
        verdicts = record.verdicts
        if verdicts is not None and not is_of(verdicts, self.table, row):
            verdicts = None
        self.verdicts: Verdicts | None = verdicts
        self.filters: Sequence[BaseHostFilter] = ()
        if verdicts is not None:
            self.filters = verdicts.filters
        elif policy is not None:
            self.filters = policy.chain.filters
        self.weighers = () if policy is None else policy.weighers
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
        if self.verdicts is None:
            return {**found, "as_of": NOW, **self._of_now()}
        number = int(self.verdicts.of_row[self.row])
        if number != PASSES:
            reason = self.verdicts.reasons[number - 1]
            return {**found, "status": "removed", **self._removed(*reason)}
        if not len(self.verdicts.totals):  # a weigher failed
            return found
        return {**found, **self._place(self.verdicts, pair)}

    def _never_evaluated(self) -> str | None:
        """Why no filter was asked about the host; its name and cell do not change."""
        if not self.table.column("has_service")[self.row]:
            return NO_SERVICE
        request, verdicts = self.record.request, self.verdicts
        is_asked = verdicts is not None and verdicts.of_row[self.row] != NOT_ASKED
        if request is None or is_asked:
            return None
        alone = Candidates(self.scope, np.array([self.row], dtype=np.int64))
        removed = selector.narrow(alone, request, self.semantics).removed
        if verdicts is not None and not removed:
            return NOT_OFFERED
        return next(iter(removed), None)

    def _removed(self, number: int, code: str) -> dict[str, Any]:
        each, request = self.filters[number], self.record.request
        texts = {reason.code: reason.text for reason in getattr(each, "reasons", ())}
        state = self.scope.state(self.row)
        wanted, found = told(each, code, state, request)
        kept = self._kept(state.host, state.nodename, each.name, code)
        if kept is not None:
            wanted, found = kept.wanted, kept.found
        others = failures(self.filters, self.scope, [self.row], request)[self.row]
        return {
            "filter": each.name,
            "reason": code,
            "text": texts.get(code, "does not pass"),
            "wanted": wanted,
            "found": found,
            "also_fails": [self.filters[n].name for n, _code in others if n != number],
            **({} if kept is None else {"numbers_of": THEN}),
        }

    def _kept(self, host: str, node: str | None, name: str, code: str) -> Closest | None:
        """What the record keeps of the host itself, as the closest for its reason."""
        wanted = (host, node, name, code, THEN)
        for each in self.record.closest if self.verdicts is not None else ():
            if (each.host, each.node, each.filter, each.reason, each.numbers_of) == wanted:
                return each
        return None

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
        return self.verdicts is None or bool(
            self.table.changed_at[self.row] > self.verdicts.version
        )

    def _place(self, verdicts: Verdicts, pair: tuple[str, str | None]) -> dict[str, Any]:
        """Rank and weight of a host that passed, and its shares if it was one of the best."""
        ranked, top = verdicts.ranked(), self.record.top
        found = {
            "rank": int((ranked == self.row).argmax()) + 1,
            "of": len(ranked),
            "total": float(verdicts.totals[self.row]),
        }
        if top is not None and pair in top.pairs:
            weighers = top.rows()[list(top.pairs).index(pair)]["weighers"]
            return {**found, "weighers": weighers, "weights_of": THEN}
        return {**found, "weighers": self._shares_of_now(verdicts), "weights_of": NOW}

    def _shares_of_now(self, verdicts: Verdicts) -> list[dict[str, Any]]:
        """What the weighers say of the host as it is now, between the bounds of the decision."""
        if self.record.request is None or len(verdicts.bounds) != len(self.weighers):
            return []
        alone = Candidates(self.scope, np.array([self.row], dtype=np.int64))
        parts = [
            Part(each.name, each.raw(alone, self.record.request), each.multipliers(alone), bounds)
            for each, bounds in zip(self.weighers, verdicts.bounds, strict=True)
        ]
        return [share_of(part, 0) for part in parts]


def is_of(verdicts: Verdicts, table: HostTable, row: int) -> bool:
    """Whether *row* was the row of the same host when the *verdicts* were found."""
    return row < len(verdicts.of_row) and bool(table.given_at[row] <= verdicts.version)
