"""The one line that every decision leaves in the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from oslo_log import log as logging

from scheduler.engine.record import DecisionRecord

LOG = logging.getLogger(__name__)

_NAMES_SHOWN = 20


def log_decision(record: DecisionRecord) -> None:
    """Say what became of the request, and of how many hosts."""
    LOG.info(
        "Placement of %d instance(s) %s: %s (%d hosts considered, %d passed the filters, %.1f ms)",
        record.num_instances,
        _shortened(record.instance_uuids),
        _failed(record) if record.failure else "selected " + _hosts(record),
        record.hosts_considered,
        record.hosts_left,
        record.elapsed_ms,
    )


def _failed(record: DecisionRecord) -> str:
    fault = f" (fault {record.fault_id})" if record.fault_id else ""
    return f"failed: {record.failure} [{record.outcome}]{fault}"


def _hosts(record: DecisionRecord) -> str:
    times = Counter(host for host, _node in record.chosen)
    return _shortened([host if n == 1 else f"{host} (x{n})" for host, n in times.items()])


def _shortened(words: Sequence[str]) -> str:
    shown = ", ".join(words[:_NAMES_SHOWN])
    more = len(words) - _NAMES_SHOWN
    return f"[{shown}, and {more} more]" if more > 0 else f"[{shown}]"
