"""What one instance takes from its host, and giving it back exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler.hosts import fitting
from scheduler.hosts.fitting import Booking, Fitting, Wish
from scheduler.hosts.table import HostTable


@dataclass(frozen=True, slots=True)
class Consumption:
    """Resources of one instance; swap is not consumed (scheduling page, section 6.4)."""

    ram_mb: int
    disk_mb: int
    vcpus: int
    #: Cells and devices, for the few that want any.
    wish: Wish | None = None
    #: What it adds to the columns of its row.
    added: Mapping[str, int] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "added", self._added(1))

    @classmethod
    def of(cls, spec_obj: Any, limits: Mapping[str, Any], how: Fitting) -> Consumption:
        """What one instance of the request takes of a host with *limits*."""
        return cls(
            ram_mb=spec_obj.memory_mb,
            disk_mb=(spec_obj.root_gb + spec_obj.ephemeral_gb) * 1024,
            vcpus=spec_obj.vcpus,
            wish=Wish.of(spec_obj, limits, how),
        )

    @property
    def given_back(self) -> Mapping[str, int]:
        """What giving it back adds to them."""
        return self._added(-1)

    def _added(self, sign: int) -> dict[str, int]:
        return {
            "free_ram_mb": -sign * self.ram_mb,
            "free_disk_mb": -sign * self.disk_mb,
            "vcpus_used": sign * self.vcpus,
            "num_instances": sign,
            "num_io_ops": sign,
        }


def take(table: HostTable, row: int, amount: Consumption) -> Booking | None:
    """Consume *amount* on *row*; the booking of its cells and devices, if it wants any.

    Of bare metal neither is known.
    """
    apply(table, row, amount)
    if amount.wish is None or table.column("bare_metal")[row]:
        return None
    return fitting.book(table, row, amount.wish)


def take_many(table: HostTable, times: Mapping[int, int], amount: Consumption) -> None:
    """Consume *amount*, no cells or devices, by row so many times; none is bare metal."""
    table.add_many(times, amount.added)


def give_back(table: HostTable, row: int, amount: Consumption, booking: Booking | None) -> None:
    """Undo a consumption; of those with a booking it must be the last one on the row."""
    if booking is not None:
        fitting.give_back(table, row, booking)
    apply(table, row, amount, sign=-1)


#: A column, what it is while a bare-metal node is taken, and where the value from before is kept.
IDLE = "idle_"
OF_WHOLE_NODE = (
    ("free_ram_mb", None, IDLE + "ram_mb"),
    ("free_disk_mb", None, IDLE + "disk_mb"),
    ("vcpus_used", "vcpus_total", IDLE + "vcpus_used"),
)


def apply(table: HostTable, row: int, amount: Consumption, sign: int = 1) -> None:
    """Consume *amount* on *row*; with ``sign=-1`` undo an earlier consumption of it.

    On a bare-metal node every instance takes all there is, and only the last one that leaves
    gives it back (scheduling page, section 5.8).
    """
    if table.column("bare_metal")[row]:
        _apply_whole(table, row, sign)
        return
    table.add(row, amount.added if sign > 0 else amount.given_back)


def _apply_whole(table: HostTable, row: int, sign: int) -> None:
    before = table.value(row, "takers")
    values: dict[str, Any] = {"takers": before + sign}
    for name, total, idle in OF_WHOLE_NODE:
        if before == 0:
            values[idle] = table.value(row, name)
            values[name] = table.value(row, total) if total else 0
        elif before + sign == 0:
            values[name] = table.value(row, idle)
            values[idle] = 0
    table.update(row, values)
