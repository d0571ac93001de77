"""Answers to ``explain``: records as plain data, and what became of one host."""

import dataclasses
import datetime
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from scheduler import errors, semantics
from scheduler.engine.evaluation import NOT_ASKED, PASSES, Part
from scheduler.engine.record import (
    NO_SERVICE,
    NOT_OFFERED,
    DecisionRecord,
    Pair,
    Verdicts,
    share_of,
)
from scheduler.explain import sentences
from scheduler.explain.measures import describe
from scheduler.explain.refusal import (
    CAUSES,
    NOW,
    THEN,
    Finding,
    closest_hosts,
    failures,
    reason_text,
)
from scheduler.filters.base import BaseHostFilter
from scheduler.hosts.candidates import Candidates, Scope, narrow

#: One answer has so many decisions at most: those of one request are few.
MOST_RECORDS: Final = 20
#: So many of the best hosts are shown.
TOP_SHOWN: Final = 5
#: Attributes of a record that are in its dict as they are.
_AS_THEY_ARE: Final = (
    *("sequence", "request_id", "num_instances", "driver", "outcome", "fault_id", "fleet"),
    *("state_age_seconds", "filters_skipped"),
)


def answer(manager: Any, name: str, on_host: str | None = None) -> list[dict[str, Any]]:
    """The records of the request id or instance uuid *name* as in ``to_dict``, the newest first.

    With *on_host*, the key of that name says what became of that host.  Raises InvalidRequest for
    a name or host that is not a text.
    """
    for field, value in (("name", name), ("on_host", on_host)):
        if not isinstance(value, str | None) or (field == "name" and not value):
            raise errors.InvalidRequest(field=field, reason="a text is needed")
    records = manager.recorder.records.find(name)[:MOST_RECORDS]
    return [explained(record, manager.driver, on_host) for record in records]


def explained(record: DecisionRecord, driver: Any, host: str | None = None) -> dict[str, Any]:
    """One record; the decision lock is held while hosts are looked at."""
    manager: Any = getattr(driver, "host_manager", None)
    if not hasattr(manager, "table"):
        return to_dict(record)
    with manager.lock:
        scope = Scope(manager.table, manager.clock(), manager.service_down_time_seconds)
        closest = closest_hosts(record, scope)
        rows = () if host is None else manager.table.rows_of_host.get(host, ())
        on_host = [_HostLookup(record, driver, scope, row).to_dict() for row in rows]
    return {**to_dict(record, closest), **({} if host is None else {"on_host": on_host})}


def asked_for(record: DecisionRecord) -> dict[str, str | None]:
    spec = record.request
    flavor = getattr(getattr(spec, "flavor", None), "name", None)
    zone, project = (getattr(spec, name, None) for name in ("availability_zone", "project_id"))
    return {"flavor": flavor, "zone": zone, "project": project}


def to_dict(record: DecisionRecord, closest: Sequence[Finding] = ()) -> dict[str, Any]:
    """*record* as what JSON can hold; the keys are described in docs/explain.md."""
    began = datetime.datetime.fromtimestamp(record.started_at, datetime.UTC)
    found: dict[str, Any] = {
        **{name: getattr(record, name) for name in _AS_THEY_ARE},
        "instance_uuids": list(record.instance_uuids),
        **asked_for(record),
        "started_at": began.isoformat(timespec="milliseconds"),
        "error": record.failure,
        "seed": f"{record.seed:016x}",
        "cells_left_out": list(record.cells_left_out),
        "never_evaluated": dict(record.never_evaluated),
        "considered": record.hosts_considered,
        "filters": [dataclasses.asdict(count) for count in record.filters],
        "passed": record.hosts_left,
        "chosen": [_pair(each) for each in record.chosen],
        "alternates": [[_pair(each) for each in row] for row in record.alternates],
        "claim": {"outcome": record.claim, "races_lost": record.races_lost},
        "placement": None if record.placement is None else record.placement.to_dict(),
        "stages_ms": {name: round(spent, 3) for name, spent in record.stages_ms.items()},
        "elapsed_ms": round(record.elapsed_ms, 3),
        "top": [] if record.top is None else record.top.rows()[:TOP_SHOWN],
        "closest": [dataclasses.asdict(each) for each in closest],
        "before_filters": [dataclasses.asdict(each) for each in record.before_filters],
        "refusal": None if record.refusal is None else dataclasses.asdict(record.refusal),
    }
    found["cause"] = sentences.cause(found)
    return found


def _pair(pair: Pair) -> dict[str, str | None]:
    return {"host": pair[0], "node": pair[1]}


class _HostLookup:
    """The fate of one row of the host table; the caller holds the decision lock.

    ``as_of`` says of which moment the verdict is, and ``numbers_of`` the numbers.  Where the
    record no longer has them, or the host has changed since, they are those of now.
    """

    def __init__(self, record: DecisionRecord, driver: Any, scope: Scope, row: int) -> None:
        self.record = record
        self.row = row
        self.scope = scope
        self.table = table = scope.table
        self.policy = policy = getattr(getattr(driver, "settings", None), "policy", None)
        verdicts = record.verdicts
        if verdicts is not None and (
            row >= len(verdicts.of_row) or table.column("given_at")[row] > verdicts.version
        ):  # the row was another host's, or nobody's
            verdicts = None
        self.verdicts: Verdicts | None = verdicts
        known = () if policy is None else policy.chain.filters
        self.filters: Sequence[BaseHostFilter] = known if verdicts is None else verdicts.filters
        self.alone = Candidates(scope, np.array([row], dtype=np.int64))

    def to_dict(self) -> dict[str, Any]:
        pair = self.table.keys[self.row]
        verdicts, changed_at = self.verdicts, self.table.column("changed_at")[self.row]
        is_current = verdicts is not None and changed_at <= verdicts.version
        found: dict[str, Any] = {
            **_pair(pair),
            "chosen": self.record.chosen.count(pair),
            "alternate": any(pair in row for row in self.record.alternates),
            "as_of": THEN,
            "numbers_of": THEN if is_current else NOW,
            "status": "passed",
        }
        early = self._never_evaluated()
        if early is not None:
            text, used = CAUSES[early], self.record.placement
            if early == NOT_OFFERED and used is not None and used.refused.get(pair[0]):
                text += f": {used.refused[pair[0]]}"
            return {**found, "status": "never_evaluated", "reason": early, "text": text}
        if verdicts is None:
            return {**found, "as_of": NOW, **self._as_of_now()}
        number = int(verdicts.of_row[self.row])
        if number != PASSES:
            return {**found, **self._removed(*verdicts.reasons[number - 1])}
        if not len(verdicts.totals):  # a weigher failed
            return found
        return {**found, **self._weight(verdicts, pair)}

    def _never_evaluated(self) -> str | None:
        """The reason why no filter was asked about the host; its name and cell do not change."""
        if not self.table.column("has_service")[self.row]:
            return NO_SERVICE
        request, verdicts = self.record.request, self.verdicts
        is_asked = verdicts is not None and verdicts.of_row[self.row] != NOT_ASKED
        if request is None or is_asked:
            return None
        rules = semantics.CURRENT if self.policy is None else self.policy.semantics
        removed = narrow(self.alone, request, rules).removed
        if verdicts is not None and not removed:
            return NOT_OFFERED
        return next(iter(removed), None)

    def _removed(self, number: int, code: str) -> dict[str, Any]:
        each, host = self.filters[number], self.scope.state(self.row)
        wanted, found = describe(each, code, host, self.record.request)
        others = failures(self.filters, self.scope, [self.row], self.record.request)[self.row]
        return {
            "status": "removed",
            "filter": each.name,
            "reason": code,
            "text": reason_text(each, code),
            "wanted": wanted,
            "found": found,
            "also_fails": [self.filters[n].name for n, _code in others if n != number],
        }

    def _as_of_now(self) -> dict[str, Any]:
        if self.record.request is None or not self.filters:
            return {"status": "unknown"}
        found = failures(self.filters, self.scope, [self.row], self.record.request)[self.row]
        return self._removed(*found[0]) if found else {"status": "passed"}

    def _weight(self, verdicts: Verdicts, pair: Pair) -> dict[str, Any]:
        """Rank and weight of a host that passed; its parts as of now if it was not of the best."""
        ranked, top, request = verdicts.ranked(), self.record.top, self.record.request
        found = {
            "rank": int((ranked == self.row).argmax()) + 1,
            "of": len(ranked),
            "total": float(verdicts.totals[self.row]),
        }
        if top is not None and pair in top.pairs:
            weighers = top.rows()[list(top.pairs).index(pair)]["weighers"]
            return {**found, "weighers": weighers, "weights_of": THEN}
        weighers = () if self.policy is None else self.policy.weighers
        if request is None or len(verdicts.bounds) != len(weighers):
            return {**found, "weighers": [], "weights_of": NOW}
        parts = [
            Part(each.name, each.raw(self.alone, request), each.multipliers(self.alone), bounds)
            for each, bounds in zip(weighers, verdicts.bounds, strict=True)
        ]
        return {**found, "weighers": [share_of(part, 0) for part in parts], "weights_of": NOW}
