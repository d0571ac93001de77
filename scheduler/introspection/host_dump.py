"""One row of the host table as plain data, with the reservations on top of the report."""

import datetime
import math
from collections.abc import Iterator
from typing import Any, Final

from scheduler import errors
from scheduler.hosts import columns
from scheduler.hosts.columns import CHANGED_BY_RESERVATIONS
from scheduler.hosts.reservations import Reservations
from scheduler.hosts.table import HostTable, Key

#: Of the table's own use: says nothing about the host.
_INTERNAL: Final = frozenset({"host", "nodename"})
TIMES: Final = frozenset({"updated_at", "service_last_seen"})
_NUMBERS: Final = tuple(columns.COLUMN_TYPES)
_TEXTS: Final = tuple(name for name in columns.TEXT_COLUMNS if name not in _INTERNAL)
#: Everything that a host dump says of a host under ``values``.
NAMES: Final = (*_NUMBERS, *_TEXTS, *columns.DOCUMENT_PARSERS, columns.INSTANCES)


def in_order(key: Key) -> tuple[str, str]:
    """A sort key of hosts by their names."""
    return key[0], key[1] or ""


def dump_host(table: HostTable, reservations: Reservations, key: Key) -> dict[str, Any]:
    """The row of *key*: ``values`` as decisions see them, ``reported`` what of it differs in the
    host's own report because of open reservations.

    Columns and documents have the names of the host table; documents are texts where the database
    has texts, times ISO texts in UTC.  The table is one that nobody decides on.
    """
    row, held = table.rows[key], reservations.on(key)
    values = dump_values(table, row)
    reported: dict[str, Any] = {}
    if held:
        with reservations.without(held):
            own = dump_values(table, row)
        placeholders = {each.placeholder.uuid for each in held if each.placeholder is not None}
        own[columns.INSTANCES] = [u for u in own[columns.INSTANCES] if u not in placeholders]
        reported = {name: value for name, value in own.items() if value != values[name]}
    return {"host": key[0], "node": key[1], "values": values, "reported": reported}


def dump_values(table: HostTable, row: int) -> dict[str, Any]:
    """The values of one row, by the NAMES."""
    host = table.value(row, "host")
    times = {name: _moment(table.value(row, name)) for name in TIMES}
    return {
        **{name: table.value(row, name) for name in _NUMBERS},
        **times,
        **{name: table.value(row, name) for name in _TEXTS},
        **{name: document(table.content(row, name)) for name in columns.DOCUMENT_PARSERS},
        columns.INSTANCES: sorted(table.instances.get(host, ())),
    }


def _moment(seconds: float) -> str | None:
    if not math.isfinite(seconds):
        return None
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat()


def document(content: Any) -> Any:
    """*content* as JSON has it: cells and devices that reservations have changed are values."""
    if isinstance(content, tuple):  # the message bus would make lists of tuples
        return [document(each) for each in content]
    return content.to_text() if hasattr(content, "to_text") else content


def _is_same(name: str, one: Any, other: Any) -> bool:
    """True when two values mean the same: texts of cells may be written differently."""
    if one == other or name not in CHANGED_BY_RESERVATIONS or one is None or other is None:
        return bool(one == other)
    parse = columns.DOCUMENT_PARSERS[name]
    try:
        return bool(parse(one) == parse(other))
    except errors.NovaException:  # a text that says nothing is the same as no other
        return False


def differences(
    key: Key, memory: dict[str, Any] | None, database: dict[str, Any] | None
) -> Iterator[dict[str, Any]]:
    """Differences of a host's values as known before and as read now; None: it is not there."""
    if memory is None or database is None:
        said = {True: "absent", False: "present"}
        memory, database = {"(host)": said[memory is None]}, {"(host)": said[database is None]}
    for name, ours in memory.items():
        theirs = database[name]
        if name in TIMES or _is_same(name, ours, theirs):
            continue
        if name == columns.INSTANCES:
            ours, theirs = sorted(set(ours) - set(theirs)), sorted(set(theirs) - set(ours))
        place = {"host": key[0], "node": key[1], "column": name}
        yield {**place, "memory": ours, "database": theirs}
