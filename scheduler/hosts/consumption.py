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


def apply(table: HostTable, row: int, amount: Consumption, sign: int = 1) -> None:
    """Consume *amount* on *row*; with ``sign=-1`` undo an earlier consumption of it."""
    table.column("free_ram_mb")[row] -= sign * amount.ram_mb
    table.column("free_disk_mb")[row] -= sign * amount.disk_mb
    table.column("vcpus_used")[row] += sign * amount.vcpus
    table.column("num_instances")[row] += sign
    table.column("num_io_ops")[row] += sign
