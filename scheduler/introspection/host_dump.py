"""One row of the host table as plain data, with the reservations on top of the report."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from scheduler import errors
from scheduler.hosts import columns, consumption
from scheduler.hosts.columns import ADDED_BY_RESERVATIONS, CHANGED_BY_RESERVATIONS
from scheduler.hosts.reservations import Reservation, Reservations
from scheduler.hosts.table import HostTable, Key

#: Of the table's own use: says nothing about the host.
_INTERNAL: Final = frozenset({"takers", "host", "nodename"})
_TIMES: Final = frozenset({"updated_at", "service_last_seen"})
_NUMBERS: Final = tuple(
    name
    for name in columns.COLUMN_TYPES
    if name not in _INTERNAL and not name.startswith(consumption.IDLE)
)
_TEXTS: Final = tuple(name for name in columns.OBJECT_COLUMNS if name not in _INTERNAL)
#: Everything that a host dump says of a host under ``values``.
NAMES: Final = (*_NUMBERS, *_TEXTS, *columns.DOCUMENT_PARSERS, columns.INSTANCES)

HostDump = dict[str, Any]


def dump_host(table: HostTable, reservations: Reservations, key: Key) -> HostDump:
    """The row of *key*: ``values`` as decisions see them, ``reported`` what of it differs in the
    host's own report because of the open ``picks``.

    Columns and documents have the names of the host table; documents are texts where the database
    has texts, times ISO texts in UTC.  The caller holds the decision lock or has a copy.
    """
    row, picks = table.rows[key], reservations.on(key)
    host, node = key
    values = {
        **{name: _number(name, table.value(row, name)) for name in _NUMBERS},
        **{name: _text(table.text(row, name)) for name in _TEXTS},
        **{name: _document(table.content(row, name)) for name in columns.DOCUMENT_PARSERS},
        columns.INSTANCES: sorted(table.instances.get(host, ())),
    }
    return {
        "host": host,
        "node": node,
        "values": values,
        "reported": _reported(table, row, picks),
        "picks": [_pick(each) for each in picks],
    }


def _reported(table: HostTable, row: int, picks: Sequence[Reservation]) -> dict[str, Any]:
    """The host's own values of all that the *picks* have changed."""
    if not picks:
        return {}
    placeholders = {each.placeholder.uuid for each in picks if each.placeholder is not None}
    instances = table.instances.get(table.text(row, "host"), {})
    own = [uuid for uuid in instances if uuid not in placeholders]
    return {
        **_numbers_before(table, row, picks),
        **_documents_before(picks),
        columns.INSTANCES: sorted(own),
    }


def _numbers_before(table: HostTable, row: int, picks: Sequence[Reservation]) -> dict[str, int]:
    if table.value(row, "bare_metal"):
        return {name: table.value(row, idle) for name, _all, idle in consumption.OF_WHOLE_NODE}
    before = {name: table.value(row, name) for name in ADDED_BY_RESERVATIONS}
    for pick in picks:
        for name, amount in pick.amount.added.items():
            before[name] -= amount
        if pick.hardware is not None and pick.hardware.placement.error is not None:
            before["num_io_ops"] += 1
    return before


def _documents_before(picks: Sequence[Reservation]) -> dict[str, Any]:
    before: dict[str, Any] = {}
    for pick in picks:
        for name, content in ({} if pick.hardware is None else pick.hardware.before).items():
            before.setdefault(name, _document(content))
    return before


def _pick(pick: Reservation) -> dict[str, Any]:
    amount = pick.amount
    return {
        "instance": pick.uuid,
        "ram_mb": amount.ram_mb,
        "disk_mb": amount.disk_mb,
        "vcpus": amount.vcpus,
        "cells_or_devices": amount.wish is not None,
        "since": _moment(pick.terms.created_at),
    }


def _number(name: str, value: Any) -> Any:
    return _moment(value) if name in _TIMES else value


def _moment(seconds: float) -> str | None:
    if not math.isfinite(seconds):
        return None
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat()


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _document(content: Any) -> Any:
    """Cells and devices that picks have changed are values; everything else is as it was read."""
    return content.to_text() if hasattr(content, "to_text") else _lists(content)


def _lists(content: Any) -> Any:
    """Aggregates without tuples, which the message bus would not keep."""
    return [_lists(each) for each in content] if isinstance(content, tuple) else content


def is_same(name: str, one: Any, other: Any) -> bool:
    """True when two values mean the same: texts of cells may be written differently."""
    if one == other:
        return True
    if name not in CHANGED_BY_RESERVATIONS or one is None or other is None:
        return False
    parse = columns.DOCUMENT_PARSERS[name]
    try:
        return bool(parse(one) == parse(other))
    except errors.NovaException:  # a text that says nothing is the same as no other
        return False


def differences(memory: Mapping[str, Any], database: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Differences between two host dumps of one host, as the values of both.

    ``explained``: the host's own report, as the worker knows it, is what the database holds, and
    the open picks are all the difference.
    """
    found = []
    for name in NAMES:
        if name in _TIMES:
            continue
        ours, theirs = memory["values"].get(name), database["values"].get(name)
        if is_same(name, ours, theirs):
            continue
        reported = memory["reported"]
        explained = name in reported and is_same(name, reported[name], theirs)
        if name == columns.INSTANCES:
            ours, theirs = sorted(set(ours) - set(theirs)), sorted(set(theirs) - set(ours))
        found.append(
            {
                "host": memory["host"],
                "node": memory["node"],
                "column": name,
                "memory": ours,
                "database": theirs,
                "picks": len(memory["picks"]) if name in reported else 0,
                "explained": explained,
            }
        )
    return found


def presence(key: Key, in_memory: bool, in_database: bool) -> dict[str, Any]:
    """That a host is known to one side only, in the form of a difference."""
    said = {True: "present", False: "absent"}
    return {
        "host": key[0],
        "node": key[1],
        "column": "(host)",
        "memory": said[in_memory],
        "database": said[in_database],
        "picks": 0,
        "explained": False,
    }
