"""Looking up what an extra spec names on a host: ``free_ram_mb``, ``cpu_info:vendor``, a stat.

The first part of a path is an attribute of the host state, else a key of its ``stats``; the
others lead on through mappings, where text is read as JSON.  Reference page filters, section
6.17.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from scheduler.hosts import columns
from scheduler.hosts.candidates import Candidates


class Verdict(enum.IntEnum):
    """What one host says to one requirement."""

    UNKNOWN = 0  # neither an attribute nor a statistic of that name
    MISSING = 1  # the path ends before a value
    REFUSED = 2
    MET = 3


_NUMBERS = frozenset((*columns.INT_COLUMNS, *columns.FLOAT_COLUMNS))
_OBJECTS = {name: name for name in columns.OBJECT_COLUMNS} | {"hypervisor_hostname": "nodename"}
#: Attributes that the table has no column for: seldom named, so asked host by host.
_ELSEWHERE = frozenset(("instances", "limits", "service", "updated"))


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

    verdicts = _of_attribute(hosts, name, verdict)
    unknown = np.flatnonzero(verdicts == Verdict.UNKNOWN)
    verdicts[unknown] = hosts.take(unknown).per_document(
        "stats", lambda stats: verdict(stats.get(name)), np.int8
    )
    if name in _OBJECTS or name in columns.DOCUMENT_PARSERS or name in _ELSEWHERE:
        verdicts[verdicts == Verdict.UNKNOWN] = Verdict.MISSING
    return verdicts


def _of_attribute(hosts: Candidates, name: str, verdict: Callable[[Any], Verdict]) -> np.ndarray:
    if name in _NUMBERS:
        return hosts.per_value(name, verdict, np.int8)
    if name in _OBJECTS:
        return hosts.per_value(_OBJECTS[name], verdict, np.int8)
    if name in columns.DOCUMENT_PARSERS:
        return hosts.per_document(name, verdict, np.int8)
    if name in _ELSEWHERE:
        found = [verdict(getattr(state, name)) for state in hosts.states()]
        return np.array(found, dtype=np.int8)
    return np.full(len(hosts), Verdict.UNKNOWN, dtype=np.int8)


def _step(found: Any, part: str) -> Any:
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except ValueError:
            return None
    return found.get(part) if isinstance(found, dict) else None
