"""Finished decisions, as the recorder tells of them."""

from typing import Any

from scheduler.engine.evaluation import FilterCount
from scheduler.engine.record import DecisionRecord


def a_record(**fields: Any) -> DecisionRecord:
    """A decision that placed one instance; *fields* change it."""
    record = DecisionRecord("req-1", ("uuid-1",), 1, 7)
    record.chosen = [("h1", "h1")]
    record.filters = [FilterCount("RamFilter", 3, 1, {"ram.insufficient": 2})]
    record.stages_ms = {"refresh": 3.0, "filter": 0.4, "weigh": 20.0}
    record.elapsed_ms = 24.0
    for name, value in fields.items():
        setattr(record, name, value)
    return record
