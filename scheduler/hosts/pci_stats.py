"""A host's free PCI devices as filters and weighers written for Nova know them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from scheduler import objects, pci
from scheduler.numa import HostTopology


class PciStats:
    """A view of pools; always true, as Nova's object is."""

    def __init__(
        self, pools: pci.Pools, host: HostTopology | None, semantics: pci.PciSemantics
    ) -> None:
        self._pools = pools
        self._host = host or HostTopology()
        self._semantics = semantics

    @property
    def pools(self) -> list[dict[str, Any]]:
        """Every pool with the tags of its devices and their ``count``."""
        return self._pools.to_dicts()

    def support_requests(
        self,
        requests: Iterable[objects.InstancePCIRequest],
        numa_cells: Sequence[objects.InstanceNUMACell] | None = None,
    ) -> bool:
        """Whether all *requests* can be served together, near the host cells of *numa_cells*."""
        wanted = tuple(map(pci.Request.from_object, requests))
        cells = None
        if numa_cells:
            cells = self._host.around(frozenset(cell.id for cell in numa_cells))
        return pci.supports(self._pools, wanted, cells, self._semantics)

    def to_device_pools_obj(self) -> objects.PciDevicePoolList:
        """The pools as wire objects."""
        return self._pools.to_object()

    def __repr__(self) -> str:
        return f"PciStats({self.pools})"
