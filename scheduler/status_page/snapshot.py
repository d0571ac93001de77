"""A copy of the host table's columns, quick to take and to compare with the one before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from scheduler.hosts.aggregate_metadata import split_values
from scheduler.hosts.candidates import heard_in_time
from scheduler.hosts.host_manager import HostManager
from scheduler.hosts.table import HostTable, Key

#: Names of ``hosts.columns``, in the order in which the page gets them.
NUMBERS: Final = (
    "total_usable_ram_mb",
    "free_ram_mb",
    "vcpus_total",
    "vcpus_used",
    "total_usable_disk_gb",
    "free_disk_mb",
    "num_instances",
    "num_io_ops",
    "failed_builds",
)
RATIOS: Final = ("ram_allocation_ratio", "cpu_allocation_ratio", "disk_allocation_ratio")
_FLAGS: Final = ("has_service", "service_forced_down", "service_disabled", "reported")

#: What a host is, the first that is true of it; its place here is its number in the column.
STATES: Final = (
    "up",
    "left out",
    "no service",
    "forced down",
    "silent",
    "disabled",
    "not reported",
)
_UP, _LEFT_OUT, _NO_SERVICE, _FORCED_DOWN, _SILENT, _DISABLED, _NOT_REPORTED = range(len(STATES))


@dataclass(frozen=True, slots=True)
class Membership:
    """Which zones and aggregates, by name, some hosts are in."""

    zones: tuple[str, ...]
    aggregates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The fleet at one moment; arrays have one value per row number of the table.

    ``keys`` is None where no row is, ``memberships`` holds document numbers, which
    ``membership_of`` resolves; ``read_at`` is when the state was read (seconds since the epoch).
    """

    keys: list[Key | None]
    numbers: np.ndarray
    ratios: np.ndarray
    states: np.ndarray
    memberships: np.ndarray
    cells: list[str | None]
    membership_of: dict[int, Membership]
    read_at: float | None


class Photographer:
    """Takes snapshots of one worker's table; holds its lock only while arrays are copied."""

    def __init__(self, manager: HostManager) -> None:
        self._manager = manager
        self._memberships: dict[int, Membership] = {}

    def take(self) -> Snapshot:
        """The table as it is now."""
        left_out = {each.uuid for each in self._manager.cell_health() if each.is_left_out}
        table, tolerance_seconds = self._manager.table, self._manager.service_down_time_seconds
        with self._manager.lock:
            read_at = self._manager.read_at
            rows = list(table.rows.items())
            capacity = table.capacity
            numbers = np.stack([table.column(name) for name in NUMBERS])
            ratios = np.stack([table.column(name) for name in RATIOS])
            flags = {name: table.column(name).copy() for name in _FLAGS}
            last_seen = table.column("service_last_seen").copy()
            memberships = table.document_numbers("aggregates").copy()
            cells = table.objects("cell_uuid")
            self._memberships = self._resolved(table, memberships)
        keys: list[Key | None] = [None] * capacity
        for key, row in rows:
            keys[row] = key
        states = _states(flags, heard_in_time(last_seen, read_at or 0.0, tolerance_seconds))
        if left_out:
            states[[cell in left_out for cell in cells]] = _LEFT_OUT
        return Snapshot(
            keys, numbers, ratios, states, memberships, cells, self._memberships, read_at
        )

    def _resolved(self, table: HostTable, numbers: np.ndarray) -> dict[int, Membership]:
        """The memberships by document number; one that was read before is not read again."""
        pool, known = table.pools["aggregates"], self._memberships
        found = {}
        for number in np.unique(numbers[numbers >= 0]).tolist():
            membership = known.get(number)
            if membership is None:
                aggregates = pool.parsed(number)
                membership = Membership(
                    tuple(sorted(split_values(aggregates, "availability_zone"))),
                    tuple(each.name or f"#{each.id}" for each in aggregates),
                )
            found[number] = membership
        return found


def _states(flags: dict[str, np.ndarray], heard: np.ndarray) -> np.ndarray:
    conditions = {
        _NO_SERVICE: ~flags["has_service"],
        _FORCED_DOWN: flags["service_forced_down"],
        _SILENT: ~heard,
        _DISABLED: flags["service_disabled"],
        _NOT_REPORTED: ~flags["reported"],
    }
    return np.select(list(conditions.values()), list(conditions), default=_UP).astype(np.int64)
