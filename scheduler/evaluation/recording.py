"""From the record of a decision to the words of the format."""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler import objects
from scheduler.engine.evaluation import NOT_ASKED, PASSES
from scheduler.engine.record import DecisionRecord, Verdicts
from scheduler.hosts.candidates import Scope
from scheduler.hosts.host_state import HostState
from scheduler.hosts.table import HostTable

Answer = dict[str, Any]


def recorded(record: DecisionRecord, driver: Any) -> Answer:
    """What the record says of the first instance: hosts left, their limits and weights."""
    if record.drawn_from:
        return {"passed": [[host, None] for host in sorted(record.drawn_from)]}
    verdicts = record.verdicts
    if verdicts is None:
        return {}
    table: HostTable = driver.host_manager.table
    filter_of = np.array([-1, *(number for number, _code in verdicts.reasons)])
    asked = np.flatnonzero(verdicts.of_row != NOT_ASKED)
    removed_by = filter_of[verdicts.of_row[asked]]
    answer: Answer = {"filters": []}
    for number, count in enumerate(record.filters):
        left = asked[(removed_by < 0) | (removed_by > number)]
        answer["filters"].append({"name": count.name, "passed": pairs(table, left)})
    passed = np.flatnonzero(verdicts.of_row == PASSES)
    answer["passed"] = pairs(table, passed)
    answer["limits"] = _limits(record, driver, passed)
    if len(passed) and len(verdicts.totals):
        answer["weights"] = _weights(verdicts, table)
    return answer


def _limits(record: DecisionRecord, driver: Any, rows: np.ndarray) -> dict[str, Any]:
    if record.filters_skipped:
        return {}
    policy, table = driver.settings.policy, driver.host_manager.table
    scope = Scope(table, 0.0, policy.service_down_time_seconds, policy.fitting)
    states = [scope.state(row) for row in rows.tolist()]
    limits = {name_of(state): policy.chain.limits(state, record.request) for state in states}
    return {name: objects.to_plain(each) for name, each in limits.items() if each}


def _weights(verdicts: Verdicts, table: HostTable) -> dict[str, float]:
    """Total weights, the best first."""
    return {
        f"{table.text(row, 'host')}/{table.text(row, 'nodename')}": float(verdicts.totals[row])
        for row in verdicts.ranked().tolist()
    }


def name_of(state: HostState) -> str:
    """How the format names a host where pairs cannot stand."""
    return f"{state.host}/{state.nodename}"


def pairs(table: HostTable, rows: np.ndarray) -> list[list[str | None]]:
    """Host and node of each, sorted."""
    return sorted([table.text(row, "host"), table.text(row, "nodename")] for row in rows.tolist())
