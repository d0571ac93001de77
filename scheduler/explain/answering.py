"""What one worker knows of a request or an instance, as plain data."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from scheduler import errors
from scheduler.explain import cause, form
from scheduler.explain.one_host import on_host
from scheduler.explain.record import DecisionRecord
from scheduler.explain.top import Top
from scheduler.hosts.table import HostTable

#: So many decisions are told of at most: those of one request are few.
MOST_RECORDS: Final = 20
#: So many of the best hosts are shown.
TOP_HOSTS: Final = 5


def answer(manager: Any, name: str, on_host: str | None = None) -> list[dict[str, Any]]:
    """The records of the request id or instance uuid *name*, the newest first.

    Each has the form of ``form.to_dict``, with more of the best hosts where those are remembered;
    with *on_host*, the key of that name says what became of that host.  Raises InvalidRequest for
    what is no name.
    """
    for field, value in (("name", name), ("on_host", on_host)):
        if not isinstance(value, str | None) or (field == "name" and not value):
            raise errors.InvalidRequest(field=field, reason="a text is needed")
    records = manager.recorder.records.of(name)[:MOST_RECORDS]
    return [explained(record, manager.driver, on_host) for record in records]


def explained(record: DecisionRecord, driver: Any, host: str | None = None) -> dict[str, Any]:
    """One record; the decision lock is held while its details are looked up."""
    host_manager: Any = getattr(driver, "host_manager", None)
    if not hasattr(host_manager, "table"):
        return form.to_dict(record)
    with host_manager.lock:
        table = host_manager.table
        more = _top(record, table)
        told = form.to_dict(record)
        if more is not None:
            told["top"] = more.rows()
            told["cause"] = cause.of(told)
        if host is not None:
            told["on_host"] = on_host(record, driver, host)
    return told


def _top(record: DecisionRecord, table: HostTable) -> Top | None:
    """The best hosts, the chosen one first, out of what is remembered; None if it is not."""
    detail = record.detail
    ranked = None if detail is None else detail.ranked()
    if detail is None or ranked is None or not record.chosen:
        return None
    value = table.value
    rows = ranked.rows[: TOP_HOSTS + 1].tolist()
    if any(table.given_at[row] > detail.position for row in rows):
        return None
    pairs = [(value(row, "host"), value(row, "nodename")) for row in rows]
    order = sorted(range(len(pairs)), key=lambda place: pairs[place] != record.chosen[0])
    if not order or pairs[order[0]] != record.chosen[0]:
        return None
    order = order[:TOP_HOSTS]
    valued = [each.some(np.array(order)) for each in ranked.valued]
    return Top(
        [pairs[place] for place in order],
        [float(ranked.totals[place]) for place in order],
        [each.name for each in valued],
        [each.raw for each in valued],
        [each.multiplier for each in valued],
        [each.bounds for each in valued],
    )
