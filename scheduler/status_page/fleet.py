"""The fleet for the page: all of it once, then what has changed since.

Every row carries the version in which it last changed.  A reader names the version that it has and
gets the rows that are newer, so that there may be any number of readers.
"""

import itertools
import secrets
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from scheduler.hosts.aggregate_metadata import split_values
from scheduler.hosts.candidates import heard_in_time
from scheduler.hosts.capacity import finite
from scheduler.hosts.host_manager import HostManager

#: Age of a reading that serves the next reader, too.
FRESH_SECONDS: Final = 0.5
_LONGEST_NUMBER: Final = 15
#: Hosts that take no servers are named with time and reason, the first so many.
MOST_NAMED: Final = 500

#: Names of ``hosts.columns``.
NUMBERS: Final = (
    *("total_usable_ram_mb", "free_ram_mb", "vcpus_total", "vcpus_used"),
    *("total_usable_disk_gb", "free_disk_mb", "num_instances", "num_io_ops", "failed_builds"),
)
RATIOS: Final = ("ram_allocation_ratio", "cpu_allocation_ratio", "disk_allocation_ratio")
SEEN: Final = "service_last_seen"
_FLAGS: Final = ("has_service", "service_forced_down", "service_disabled", "reported")
#: In the order in which a row holds them.
_COLUMNS: Final = ("host", "node", *NUMBERS, *RATIOS, "state", "membership", "cell")

#: State of a host, the first that is true of it; its place here is its number in the column.
STATES: Final = (
    *("up", "left out", "no service", "forced down"),
    *("down", "disabled", "not reported"),
)

Row = tuple[Any, ...]
"""One host's values, in the order of ``_COLUMNS``."""


class Fleet:
    """Changes of one worker's host table in versions, for many threads; *clock* only grows."""

    def __init__(self, manager: HostManager, clock: Callable[[], float] = time.monotonic) -> None:
        self._manager = manager
        self._clock = clock
        self._lock = threading.Lock()
        self._read_at = float("-inf")
        self._epoch = secrets.token_hex(4)
        self._version = 0
        self._rows: dict[int, Row] = {}
        self._versions: dict[int, int] = {}
        self._unavailable: list[tuple[int, float | None, str | None]] = []
        #: When each host was found to be disabled or forced down; None: it was so from the start.
        self._taken_out: dict[str, float | None] | None = None

    def note_taken_out(self) -> None:
        """Note when hosts are disabled, which no database says; called every few seconds."""
        table, before = self._manager.table, self._taken_out
        with self._manager.lock:
            out = table.column("service_disabled") | table.column("service_forced_down")
            rows = np.flatnonzero(out & table.column("has_service")).tolist()
            hosts = {table.keys[row][0] for row in rows}
        first = None if before is None else self._manager.clock()
        self._taken_out = {host: (before or {}).get(host, first) for host in hosts}

    def _since(self, found: tuple[int, str, int, float]) -> tuple[int, float | None, str | None]:
        """The row, when its host was last in another state, if known, and the reason given."""
        row, host, state, seen = found
        if STATES[state] == "down":
            return row, seen if np.isfinite(seen) else None, None
        reason = self._manager.table.services.get(host, {}).get("disabled_reason")
        return row, (self._taken_out or {}).get(host), reason

    def changes(self, since: str | None) -> dict[str, Any]:
        """Changes since the answer whose ``version`` was *since*; else everything.

        ``columns`` has one value per row named in ``columns["row"]``; a node is None where it is
        called like its host.  ``removed`` names rows that are no more.  A membership and a cell
        are places in ``memberships`` and ``cells`` of the same answer.  ``unavailable`` names
        rows that take no servers, each with the time since when, or None, and a reason.
        """
        with self._lock:
            self._look()
            known = self._known(since)
            rows = sorted(row for row, version in self._versions.items() if version > known)
            present = [row for row in rows if row in self._rows]
            values = zip(*(self._rows[row] for row in present), strict=True)
            version = f"{self._epoch}.{self._version}"
            unavailable = self._unavailable
            removed = [row for row in rows if row not in self._rows] if known else []
        columns = {"row": present, **dict.fromkeys(_COLUMNS, [])}
        columns.update(zip(_COLUMNS, map(list, values), strict=False))
        memberships, columns["membership"] = _distinct(columns["membership"])
        cells, columns["cell"] = _distinct(columns["cell"])
        return {
            "version": version,
            "is_full": known == 0,
            "states": STATES,
            "columns": columns,
            "removed": removed,
            "unavailable": unavailable,
            "memberships": [{"zones": zones, "aggregates": a} for zones, a in memberships],
            "cells": cells,
        }

    def _known(self, since: str | None) -> int:
        epoch, _dot, version = (since or "").partition(".")
        number = number_of(version)
        return number if epoch == self._epoch and number <= self._version else 0

    def _look(self) -> None:
        if self._clock() - self._read_at < FRESH_SECONDS:
            return
        version, before = self._version + 1, self._rows
        self._rows = self._read()
        self._read_at = self._clock()
        changed = [row for row, values in self._rows.items() if before.get(row) != values]
        changed += before.keys() - self._rows.keys()
        if changed:
            self._version = version
            self._versions.update(dict.fromkeys(changed, version))

    def _read(self) -> dict[int, Row]:
        """Every row; the decision lock is held only while arrays are copied."""
        self.note_taken_out()
        manager, table = self._manager, self._manager.table
        left_out = {each.uuid for each in manager.cell_health() if each.is_left_out}
        with manager.lock:
            read_at = manager.read_at or 0.0
            keys = dict(table.rows)
            at = np.fromiter(keys.values(), dtype=np.int64, count=len(keys))
            own = {name: table.column(name)[at] for name in (*RATIOS, *_FLAGS, SEEN)}
            own |= {name: table.column(name)[at].astype(np.int64) for name in NUMBERS}
            documents = table.column("aggregates")[at].tolist()
            aggregates = {each: _membership(table, each) for each in set(documents)}
            cells = [table.value(row, "cell_uuid") for row in keys.values()]
        for name in RATIOS:
            own[name] = finite(own[name]).round(3)
        heard = heard_in_time(own[SEEN], read_at, manager.service_down_time_seconds)
        conditions = [  # in the order of STATES, after the first
            np.array([cell in left_out for cell in cells], dtype=np.bool_),
            ~own["has_service"],
            own["service_forced_down"],
            ~heard,
            own["service_disabled"],
            ~own["reported"],
        ]
        states = np.select(conditions, range(1, len(STATES)), default=0)
        several = zip(keys.items(), states.tolist(), own[SEEN].tolist(), strict=True)
        out = ((row, host, state, seen) for ((host, _node), row), state, seen in several if state)
        self._unavailable = list(map(self._since, itertools.islice(out, MOST_NAMED)))
        columns = zip(
            [host for host, _node in keys],
            [None if node == host else node for host, node in keys],
            *(own[name].tolist() for name in (*NUMBERS, *RATIOS)),
            states.tolist(),
            [aggregates[each] for each in documents],
            cells,
            strict=True,
        )
        return dict(zip(keys.values(), columns, strict=True))


def number_of(text: str) -> int:
    """The number that *text*, which comes from outside, is; 0 if it is none."""
    is_number = text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER
    return int(text) if is_number else 0


def _distinct(values: list[Any]) -> tuple[list[Any], list[int]]:
    """Each of *values* once, and the place of every value there."""
    places = {each: place for place, each in enumerate(dict.fromkeys(values))}
    return list(places), [places[each] for each in values]


def _membership(table: Any, document: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The zones and the aggregates, by name, of the hosts that have the *document*."""
    aggregates = table.pools["aggregates"].parsed(document) if document >= 0 else ()
    zones = tuple(sorted(split_values(aggregates, "availability_zone")))
    return zones, tuple(each.name or f"#{each.id}" for each in aggregates)
