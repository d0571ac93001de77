"""What the stub's compute hosts look like: kinds of hosts, and N hosts made of them."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from scheduler import errors

DEFAULT_FILE = pathlib.Path(__file__).parents[1] / "profiles" / "default.yaml"
ZONE_KEY = "availability_zone"


@dataclasses.dataclass(frozen=True)
class NumaCell:
    """One NUMA node of a host; *pages* is page size in KiB -> number of pages."""

    cpus: frozenset[int]
    memory_mb: int
    siblings: tuple[frozenset[int], ...] = ()
    socket: int | None = None
    pages: Mapping[int, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class PciPool:
    """Like devices of a host that are handed out one by one."""

    vendor_id: str
    product_id: str
    count: int
    numa_node: int | None = None
    tags: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class HostKind:
    """One size of host: exactly *count* of them, or a *share* of those that remain."""

    name: str
    vcpus: int
    memory_mb: int
    local_gb: int
    share: int = 1
    count: int | None = None
    cpu_allocation_ratio: float = 16.0
    ram_allocation_ratio: float = 1.5
    disk_allocation_ratio: float = 1.0
    hypervisor_type: str = "QEMU"
    hypervisor_version: int = 7_002_000
    cpu_info: Mapping[str, Any] | None = None
    supported_instances: tuple[tuple[str, str, str], ...] = (
        ("x86_64", "qemu", "hvm"),
        ("x86_64", "kvm", "hvm"),
    )
    numa_cells: tuple[NumaCell, ...] = ()
    pci_pools: tuple[PciPool, ...] = ()
    metrics: Mapping[str, float] = dataclasses.field(default_factory=dict)
    availability_zones: tuple[str, ...] = ()
    aggregates: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    stats: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class HostPlan:
    """One host to be: its name (service host and node alike), kind and zone."""

    name: str
    kind: HostKind
    availability_zone: str | None = None

    @property
    def aggregates(self) -> dict[str, dict[str, str]]:
        """Name -> metadata of every aggregate the host belongs in; a zone is an aggregate too."""
        found = {name: dict(metadata) for name, metadata in self.kind.aggregates.items()}
        if self.availability_zone is not None:
            found.setdefault(self.availability_zone, {})[ZONE_KEY] = self.availability_zone
        return found


@dataclasses.dataclass(frozen=True)
class Profile:
    """The kinds of hosts of one fleet."""

    kinds: tuple[HostKind, ...]
    source: str = "profile"

    @property
    def natural_size(self) -> int:
        """How many hosts the profile makes when nobody names a number."""
        return sum(kind.share if kind.count is None else kind.count for kind in self.kinds)

    def plan(self, hosts: int, prefix: str = "compute") -> list[HostPlan]:
        """Lay out *hosts* hosts named ``<prefix>-01`` and so on, kinds and zones interleaved.

        Raises ``ConfigurationError`` when the fixed counts do not fit the number of hosts.
        """
        left = self._amounts(hosts)
        total = dict(left)
        plans: list[HostPlan] = []
        for number in range(1, hosts + 1):
            # the kind that lags most behind its part of the fleet comes next
            index = max(left, key=lambda i: (left[i] / total[i] if total[i] else 0.0, -i))
            kind = self.kinds[index]
            made = total[index] - left[index]
            left[index] -= 1
            zones = kind.availability_zones
            zone = zones[made % len(zones)] if zones else None
            plans.append(HostPlan(f"{prefix}-{number:02d}", kind, zone))
        return plans

    def _amounts(self, hosts: int) -> dict[int, int]:
        """Kind's index -> how many of it: counts first, the rest by largest remainder."""
        amounts = {i: kind.count or 0 for i, kind in enumerate(self.kinds)}
        rest = hosts - sum(amounts.values())
        shares = {i: kind.share for i, kind in enumerate(self.kinds) if kind.count is None}
        if rest < 0 or (rest and not shares):
            raise errors.ConfigurationError(
                option=f"{self.source}: hosts",
                reason=f"the counts add up to {hosts - rest} hosts, but {hosts} are wanted",
            )
        whole = sum(shares.values())
        exact = {i: rest * share / whole for i, share in shares.items()}
        amounts.update({i: int(part) for i, part in exact.items()})
        missing = rest - sum(int(part) for part in exact.values())
        for i in sorted(exact, key=lambda i: int(exact[i]) - exact[i])[:missing]:
            amounts[i] += 1
        return amounts


def merged_aggregates(plans: Sequence[HostPlan]) -> dict[str, dict[str, str]]:
    """Every aggregate the plans name, each with the metadata all of them agree on.

    Raises ``ConfigurationError`` when two kinds give one key of an aggregate different values.
    """
    merged: dict[str, dict[str, str]] = {}
    for plan in plans:
        for name, metadata in plan.aggregates.items():
            known = merged.setdefault(name, {})
            for key, value in metadata.items():
                if known.setdefault(key, value) != value:
                    raise errors.ConfigurationError(
                        option=f"aggregates.{name}.{key}",
                        reason=f"is both {known[key]!r} and {value!r}",
                    )
    return merged
