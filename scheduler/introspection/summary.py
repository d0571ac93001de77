"""A worker's state in a few numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.hosts.candidates import Candidates, Scope
from scheduler.introspection.identity import worker
from scheduler.introspection.subject import Subject


def state_summary(subject: Subject) -> dict[str, Any]:
    """Who the worker is, what it knows of the fleet, what it has promised and how old that is.

    Hosts are compute nodes.  ``candidates`` are those with a service record; ``up`` and
    ``disabled`` are of them.
    """
    manager = subject.known_host_manager
    with manager.lock:
        counts = _counts(manager, subject.conf.service_down_time)
    age = manager.state_age_seconds
    left_out = [each.uuid for each in manager.cell_health() if each.is_left_out]
    return {
        **worker(subject),
        **counts,
        "state_age_seconds": None if age is None else round(age, 3),
        "cells_left_out": left_out,
    }


def _counts(manager: Any, service_down_time_seconds: float) -> dict[str, int]:
    table = manager.table
    candidates = Candidates(
        Scope(table, manager.clock(), service_down_time_seconds), table.order.copy()
    )
    return {
        "hosts": len(table),
        "candidates": len(candidates),
        "up": int(np.count_nonzero(candidates.service_up)),
        "disabled": int(np.count_nonzero(candidates.service_disabled)),
        "instances": len(table.host_of_instance),
        "aggregates": len(manager.aggregates),
        "open_picks": sum(1 for _pick in manager.books),
    }
