"""Looking up what an extra spec names on a host: ``free_ram_mb``, ``cpu_info:vendor``, a stat.

The first part of a path is an attribute of the host state, else a key of its ``stats``; the
others lead on through mappings, where text is read as JSON.  Reference page filters, section
6.17.
"""

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from scheduler.hosts import columns
from scheduler.hosts.candidates import Candidates
from scheduler.objects.registry import read_json

#: Attributes that are columns of numbers.
NUMBERS = frozenset((*columns.INT_COLUMNS, *columns.FLOAT_COLUMNS))
_TEXTS = {name: name for name in columns.TEXT_COLUMNS} | {"hypervisor_hostname": "nodename"}
#: Attributes that are in the table.
OF_TABLE = frozenset((*NUMBERS, *_TEXTS, *columns.DOCUMENT_PARSERS))
#: Attributes that a host does not have before its row is filled in.
_ONCE_REPORTED = frozenset((*columns.FLOAT_COLUMNS, "hypervisor_hostname"))
#: Attributes that the table has no column for: seldom named, so asked host by host.
_ELSEWHERE = frozenset(("instances", "limits", "service", "updated"))


class Verdict(enum.IntEnum):
    UNKNOWN = 0  # neither an attribute nor a statistic of that name
    MISSING = 1  # the path ends before a value
    REFUSED = 2
    MET = 3


def judge(hosts: Candidates, path: Sequence[str], test: Callable[[str], bool]) -> np.ndarray:
    """A Verdict per host: whether the text of what *path* leads to passes *test*."""
    name, *rest = path

    def verdict(found: Any) -> Verdict:
        if found is None:
            return Verdict.UNKNOWN
        for part in rest:
            found = _step(found, part)
        if found is None:
            return Verdict.MISSING
        return Verdict.MET if test(str(found)) else Verdict.REFUSED

    found = distinct(hosts, name)
    verdicts = np.full(len(hosts), Verdict.UNKNOWN, dtype=np.int8)
    if found is not None:
        values, positions = found
        verdicts = np.array([verdict(value) for value in values], dtype=np.int8)[positions]
    unknown = np.flatnonzero(verdicts == Verdict.UNKNOWN)
    verdicts[unknown] = hosts.take(unknown).per_document(
        "stats", lambda stats: verdict(stats.get(name)), np.int8
    )
    if found is not None:
        verdicts[verdicts == Verdict.UNKNOWN] = Verdict.MISSING
    return verdicts


def are_numbers(hosts: Candidates, name: str) -> bool:
    """True when attribute *name* is a column of numbers that all *hosts* have."""
    return name in NUMBERS and (name not in _ONCE_REPORTED or bool(hosts.reported.all()))


def distinct(hosts: Candidates, name: str) -> tuple[list[Any], np.ndarray] | None:
    """Distinct values of attribute *name*, if hosts have it, and per host where its own is."""
    if name in _ONCE_REPORTED and not hosts.reported.all():
        column = _TEXTS.get(name, name)
        known = zip(hosts.rows.tolist(), hosts.reported.tolist(), strict=True)
        return interned([hosts.table.value(row, column) if there else None for row, there in known])
    if name in NUMBERS:
        numbers, positions = np.unique(getattr(hosts, name), return_inverse=True)
        is_whole = name in columns.INT_COLUMNS
        return (numbers.astype(np.int64) if is_whole else numbers).tolist(), positions
    if name in _TEXTS or name in columns.DOCUMENT_PARSERS:
        return hosts.documents(_TEXTS.get(name, name))
    if name in _ELSEWHERE:
        return [getattr(state, name) for state in hosts.states()], np.arange(len(hosts))
    return None


def interned(values: list[Any]) -> tuple[list[Any], np.ndarray]:
    """The distinct ones among hashable *values*, and per value its position among them."""
    numbers: dict[Any, int] = {}
    positions = [numbers.setdefault((type(value), value), len(numbers)) for value in values]
    return [value for _kind, value in numbers], np.array(positions, dtype=np.int64)


def _step(found: Any, part: str) -> Any:
    if isinstance(found, str):
        try:
            found = read_json(found)
        except ValueError:
            return None
    return found.get(part) if isinstance(found, dict) else None
