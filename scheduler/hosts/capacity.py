"""Totals of the fleet: what is there, used and free by zone, and how many servers still fit.

Counted from columns when somebody asks.  Decisions only wait while the columns are copied.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np

from scheduler.hosts.aggregate_metadata import split_values
from scheduler.hosts.candidates import Candidates, Scope
from scheduler.hosts.host_manager import HostManager

#: An infinite ratio counts as this one: JSON has no word for it.
LARGEST_RATIO: Final = 1e6
MEMORY, VCPUS, DISK = "memory_mb", "vcpus", "disk_mb"
PHYSICAL, FREE = "physical", "free"


def resources(hosts: Candidates) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """By resource what each of *hosts* has, what of that is free, and the allocation ratio."""
    disk_mb, vcpus = hosts.total_usable_disk_gb * 1024, hosts.vcpus_total
    return {
        MEMORY: (hosts.total_usable_ram_mb, hosts.free_ram_mb, hosts.ram_allocation_ratio),
        VCPUS: (vcpus, vcpus - hosts.vcpus_used, hosts.cpu_allocation_ratio),
        DISK: (disk_mb, hosts.free_disk_mb, hosts.disk_allocation_ratio),
    }


def finite(ratios: np.ndarray) -> np.ndarray:
    """Allocation ratios as numbers; what is none is 0."""
    return np.clip(np.nan_to_num(ratios), -LARGEST_RATIO, LARGEST_RATIO)


@dataclass(frozen=True)
class Capacity:
    """The amounts of each host: an array per resource and kind, *taking* those that take servers.

    ``free`` is what servers can still get: nothing on a host that takes none.
    """

    amounts: dict[str, dict[str, np.ndarray]]
    taking: np.ndarray
    zones: dict[str, np.ndarray]
    """Mask of the hosts of each zone; a host may be in several."""
    bare_metal: np.ndarray

    @classmethod
    def from_manager(cls, manager: HostManager, default_zone: str) -> Self:
        """The fleet as last read; hosts in no zone are in *default_zone*."""
        table, left_out = manager.table, manager.cells_left_out
        with manager.lock:
            rows = np.fromiter(table.rows.values(), dtype=np.int64, count=len(table.rows))
            scope = Scope(table, manager.clock(), manager.service_down_time_seconds)
            hosts = Candidates(scope, rows)
            takes = hosts.has_service & hosts.reported & hosts.service_up & ~hosts.service_disabled
            takes &= ~hosts.having("cell_uuid", left_out)
            documents, places = hosts.documents("aggregates")
            several = resources(hosts)
            bare_metal = hosts.bare_metal
        amounts = {name: _amounts(*each, takes) for name, each in several.items()}
        zones_of = [split_values(each, "availability_zone") or {default_zone} for each in documents]
        zones = {
            zone: np.array([zone in each for each in zones_of], dtype=np.bool_)[places]
            for zone in sorted(set().union(*zones_of))
        }
        return cls(amounts, takes, zones, bare_metal)

    def totals(self) -> list[dict[str, Any]]:
        """For all hosts (zone None) and per zone amounts by resource and kind, and hosts."""
        everybody = None, np.ones(len(self.taking), dtype=np.bool_)
        return [
            {
                "zone": zone,
                "hosts": int(np.count_nonzero(mask)),
                "taking": int(np.count_nonzero(mask & self.taking)),
                **{
                    name: {kind: float(values[mask].sum()) for kind, values in kinds.items()}
                    for name, kinds in self.amounts.items()
                },
            }
            for zone, mask in (everybody, *self.zones.items())
        ]

    def fits(self, flavors: Iterable[Any]) -> list[dict[str, Any]]:
        """Count the servers of each flavor that fit, in all and per zone, and what ends first.

        By memory, vCPUs and disk alone: filters may refuse more.  The resource that ends first is
        the one that allows the fewest; None for a flavor that needs nothing.
        """
        return [self._fit(each) for each in flavors]

    def _fit(self, flavor: Any) -> dict[str, Any]:
        disk_mb = int(1024 * (flavor.root_gb + flavor.ephemeral_gb) + flavor.swap)
        wanted = {MEMORY: flavor.memory_mb, VCPUS: flavor.vcpus, DISK: disk_mb}
        allowed = {}
        for name, amount in wanted.items():
            if amount > 0:
                has = self.amounts[name]
                allowed[name] = has[FREE] // amount * (has[PHYSICAL] >= amount)
        fit = np.where(self.taking, 1.0 if not allowed else np.min(list(allowed.values()), 0), 0)
        fit = np.where(self.bare_metal, np.minimum(fit, 1), fit)
        return {
            "flavor": flavor.name,
            **wanted,
            "fits": int(fit.sum()) if allowed else None,
            "ends_first": min(allowed, key=lambda name: allowed[name].sum(), default=None),
            "zones": {zone: int(fit[mask].sum()) for zone, mask in self.zones.items()},
        }


def _amounts(
    total: np.ndarray, free: np.ndarray, ratios: np.ndarray, takes: np.ndarray
) -> dict[str, np.ndarray]:
    capacity, used = total * finite(ratios), total - free
    room = np.where(takes, np.maximum(capacity - used, 0), 0)
    return {PHYSICAL: total, "capacity": capacity, "used": used, FREE: room}


def host_states(table: Any, now: float, service_down_time_seconds: float) -> dict[str, int]:
    """Compute nodes of *table* by state, each counted once: a disabled one may be down, too."""
    rows = np.fromiter(table.rows.values(), dtype=np.int64, count=len(table.rows))
    hosts = Candidates(Scope(table, now, service_down_time_seconds), rows)
    disabled = hosts.has_service & hosts.service_disabled
    counts = {
        "up": int(np.count_nonzero(hosts.has_service & ~disabled & hosts.service_up)),
        "disabled": int(np.count_nonzero(disabled)),
        "without_service": int(np.count_nonzero(~hosts.has_service)),
    }
    counts["down"] = len(rows) - sum(counts.values())
    return {**counts, "incomplete": len(table.incomplete)}
