"""What one instance takes from its host, and giving it back exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scheduler.hosts.table import HostTable


@dataclass(frozen=True, slots=True)
class Consumption:
    """Resources of one instance; swap is not consumed (scheduling page, section 6.4)."""

    ram_mb: int
    disk_mb: int
    vcpus: int

    @classmethod
    def of(cls, spec_obj: Any) -> Consumption:
        """What one instance of the request takes."""
        disk_gb = spec_obj.root_gb + spec_obj.ephemeral_gb
        return cls(ram_mb=spec_obj.memory_mb, disk_mb=disk_gb * 1024, vcpus=spec_obj.vcpus)


#: A column, what it is while a bare-metal node is taken, and where the value from before is kept.
_OF_WHOLE_NODE = (
    ("free_ram_mb", None, "idle_ram_mb"),
    ("free_disk_mb", None, "idle_disk_mb"),
    ("vcpus_used", "vcpus_total", "idle_vcpus_used"),
)


def apply(table: HostTable, row: int, amount: Consumption, sign: int = 1) -> None:
    """Consume *amount* on *row*; with ``sign=-1`` undo an earlier consumption of it.

    On a bare-metal node every instance takes all there is, and only the last one that leaves
    gives it back (scheduling page, section 5.8).
    """
    if table.column("bare_metal")[row]:
        _apply_whole(table, row, sign)
        return
    table.column("free_ram_mb")[row] -= sign * amount.ram_mb
    table.column("free_disk_mb")[row] -= sign * amount.disk_mb
    table.column("vcpus_used")[row] += sign * amount.vcpus
    table.column("num_instances")[row] += sign
    table.column("num_io_ops")[row] += sign


def _apply_whole(table: HostTable, row: int, sign: int) -> None:
    takers = table.column("takers")
    before = int(takers[row])
    takers[row] = before + sign
    for name, total, idle in _OF_WHOLE_NODE:
        value, kept = table.column(name), table.column(idle)
        if before == 0:
            kept[row] = value[row]
            value[row] = table.column(total)[row] if total else 0
        elif before + sign == 0:
            value[row] = kept[row]
            kept[row] = 0
