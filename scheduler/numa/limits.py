"""How far the cells of a host may be overcommitted, as an immutable value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from scheduler import objects
from scheduler.numa.host import Networks


@dataclass(frozen=True, slots=True)
class Limits:
    """The two ratios, the same for every cell, and the networks that the guest wants."""

    cpu_ratio: float
    ram_ratio: float
    networks: Networks | None = None

    @classmethod
    def of(cls, limits: objects.NUMATopologyLimits) -> Self:
        """The value of a wire object."""
        metadata = limits.network_metadata
        return cls(
            cpu_ratio=limits.cpu_allocation_ratio,
            ram_ratio=limits.ram_allocation_ratio,
            networks=None if metadata is None else Networks.of(metadata),
        )

    def to_object(self) -> objects.NUMATopologyLimits:
        """The wire object, as replies carry it."""
        limits = objects.NUMATopologyLimits(
            cpu_allocation_ratio=self.cpu_ratio, ram_allocation_ratio=self.ram_ratio
        )
        if self.networks is not None:
            limits.network_metadata = self.networks.to_object()
        return limits
