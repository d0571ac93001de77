"""What reads of the hosts cost, and what full reads find that earlier ones have missed."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from scheduler.hosts import rows

MISSED_AFTER_SECONDS: Final = 60.0
"""A row written so long before an earlier read was to be found by that one: transactions commit
late, and clocks differ, but not by so much."""


@dataclass(frozen=True, slots=True)
class ReadCost:
    """One read: everything (*full*) or what changed.  *rows* are compute nodes and instances."""

    full: bool
    seconds: float
    rows: int = 0
    repairs: int = 0
    failed: bool = False


Listener = Callable[[ReadCost], None]
"""Told after each read, by the thread that has read; must be quick, and raise nothing."""


class Repairs:
    """Counts the rows that a full read shows to differ although they were written long before."""

    def __init__(self) -> None:
        self.rows = 0
        """Rows looked at so far."""
        self.count = 0
        self.full_reads = 0
        self._read_at: dict[str, float] = {}
        self._missed_before = float("-inf")

    def begin(self, cell_uuid: str, *, full: bool, now: float) -> None:
        """The rows that follow are those of a read of the cell at *now*."""
        self.full_reads += full
        before = self._read_at.get(cell_uuid, float("-inf"))
        self._missed_before = before - MISSED_AFTER_SECONDS if full else float("-inf")
        self._read_at[cell_uuid] = now

    def look(self, row: Any, known_updated_at: float | None) -> None:
        """A *row* was read; until now it was known as updated then (None: it was unknown)."""
        self.rows += 1
        if self._missed_before == float("-inf"):
            return
        updated_at = rows.seconds(row.updated_at)
        written_at = rows.seconds(row.created_at) if row.updated_at is None else updated_at
        is_known = known_updated_at in (updated_at, written_at)
        if not is_known and written_at < self._missed_before:
            self.count += 1


@contextlib.contextmanager
def measured(repairs: Repairs, listeners: Iterable[Listener]) -> Iterator[None]:
    """Within it the hosts are read, which *repairs* looks on; then *listeners* are told."""
    began = time.perf_counter()
    before = repairs.rows, repairs.count, repairs.full_reads
    failed = True
    try:
        yield
        failed = False
    finally:
        cost = ReadCost(
            full=repairs.full_reads > before[2],
            seconds=time.perf_counter() - began,
            rows=repairs.rows - before[0],
            repairs=repairs.count - before[1],
            failed=failed,
        )
        for tell in listeners:
            tell(cost)
