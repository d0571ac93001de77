"""Which services were heard from in time, at the price of those for which that has changed.

Reference page scheduling, section 10.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scheduler.hosts import columns

if TYPE_CHECKING:
    from scheduler.hosts.table import HostTable

#: Rows are looked at this long before one may change, for the rounding of times.
_MARGIN_SECONDS = 0.01


def heard_in_time(last_seen: np.ndarray, now: float, tolerance_seconds: float) -> np.ndarray:
    """Mask of those last seen no longer than the tolerance ago.

    A heartbeat too far in the future counts as none.
    """
    in_time: np.ndarray = np.abs(now - last_seen) <= tolerance_seconds
    return in_time


class Liveness:
    """Notes in the journal of *table* when rows begin or cease to be heard from in time."""

    def __init__(self, table: HostTable, service_down_time_seconds: float) -> None:
        self.table = table
        self.tolerance_seconds = service_down_time_seconds
        self._heard = np.zeros(0, dtype=np.bool_)
        self._position = 0
        self._checked_at = float("inf")
        self._next_at = float("-inf")

    def check(self, now: float) -> None:
        """Bring the journal to the moment *now* (seconds since the epoch)."""
        heartbeats = self.table.heartbeats
        if not self._checked_at <= now < self._next_at:
            self._check_all(now)
        elif heartbeats.position != self._position:
            news = heartbeats.since(self._position, columns.EVERYTHING)
            if news is None:
                self._check_all(now)
            else:
                self._check_rows(np.fromiter(news, dtype=np.int64, count=len(news)), now)
        self._position = heartbeats.position
        self._checked_at = now

    def _check_all(self, now: float) -> None:
        capacity = self.table.capacity
        if capacity != len(self._heard):
            grown = np.zeros(capacity, dtype=np.bool_)
            grown[: len(self._heard)] = self._heard
            self._heard = grown
        self._next_at = float("inf")
        self._check_rows(np.arange(capacity), now)

    def _check_rows(self, rows: np.ndarray, now: float) -> None:
        if len(rows) and int(rows.max()) >= len(self._heard):
            self._check_all(now)
            return
        last_seen = self.table.column("service_last_seen")[rows]
        heard = heard_in_time(last_seen, now, self.tolerance_seconds)
        for row in rows[heard != self._heard[rows]].tolist():
            self.table.changes.note(row, columns.BITS[columns.HEARD_IN_TIME])
        self._heard[rows] = heard
        turns = np.where(heard, last_seen + self.tolerance_seconds, np.inf)
        early = ~heard & (last_seen > now)
        turns[early] = last_seen[early] - self.tolerance_seconds
        if len(turns):
            self._next_at = min(self._next_at, float(turns.min()) - _MARGIN_SECONDS)
