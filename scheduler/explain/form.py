"""A record as plain data: what RPC, JSON output, the database and the status page show."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any, Final

from scheduler.engine.record import DecisionRecord, Pair
from scheduler.explain import cause

#: So many of the best hosts are shown.
TOP_SHOWN: Final = 5


def to_dict(record: DecisionRecord) -> dict[str, Any]:
    """*record* as what JSON can hold; the keys are described in docs/explain.md."""
    told: dict[str, Any] = {
        "sequence": record.sequence,
        "request_id": record.request_id,
        "instance_uuids": list(record.instance_uuids),
        "num_instances": record.num_instances,
        "driver": record.driver,
        "started_at": _moment(record.started_at),
        "outcome": record.outcome,
        "error": record.failure,
        "fault_id": record.fault_id,
        "seed": f"{record.seed:016x}",
        "state_age_seconds": record.state_age_seconds,
        "cells_left_out": list(record.cells_left_out),
        "cause": "",
        **_counts(record),
        "chosen": [_pair(each) for each in record.chosen],
        "alternates": [[_pair(each) for each in row] for row in record.alternates],
        "placed_before_failure": record.placed_before_failure,
        "claim": {"outcome": record.claim, "races_lost": record.races_lost},
        "stages_ms": {name: round(spent, 3) for name, spent in record.stages_ms.items()},
        "elapsed_ms": round(record.elapsed_ms, 3),
        "top": [] if record.top is None else record.top.rows()[:TOP_SHOWN],
        "closest": [dataclasses.asdict(each) for each in record.closest],
        "before_filters": [dataclasses.asdict(each) for each in record.before_filters],
        "refusal": None if record.refusal is None else dataclasses.asdict(record.refusal),
    }
    told["cause"] = cause.of(told)
    return told


def _counts(record: DecisionRecord) -> dict[str, Any]:
    return {
        "fleet": record.fleet,
        "never_evaluated": dict(record.never_evaluated),
        "considered": record.hosts_considered,
        "filters_skipped": record.filters_skipped,
        "filters": [
            {
                "name": count.name,
                "start": count.start,
                "end": count.end,
                "removed": dict(count.removed),
            }
            for count in record.filters
        ],
        "passed": record.hosts_left,
    }


def _moment(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat(timespec="milliseconds")


def _pair(pair: Pair) -> dict[str, str | None]:
    return {"host": pair[0], "node": pair[1]}
