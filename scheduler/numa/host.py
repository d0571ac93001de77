"""The NUMA topology of a host as an immutable, hashable value.

One parsed document serves every host that reported the same text, so nothing may change it in
place: accounting builds a new one and shares what stayed the same.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Self

from scheduler import objects
from scheduler.pci import Cells


@dataclass(frozen=True, slots=True)
class Pages:
    """Memory pages of one size (KiB) in a cell."""

    size_kb: int
    total: int
    used: int = 0
    reserved: int = 0

    @property
    def free_kb(self) -> int:
        """What neither guests nor the host took, in KiB."""
        return (self.total - self.used - self.reserved) * self.size_kb

    @property
    def total_kb(self) -> int:
        """All pages, in KiB."""
        return self.total * self.size_kb


@dataclass(frozen=True, slots=True)
class Networks:
    """The physical networks tied to a cell or wanted by a guest, and whether tunnels are."""

    physnets: frozenset[str] = frozenset()
    tunneled: bool = False

    @classmethod
    def of(cls, metadata: objects.NetworkMetadata) -> Self:
        """The value of a wire object."""
        return cls(frozenset(metadata.physnets), bool(metadata.tunneled))

    def to_object(self) -> objects.NetworkMetadata:
        """The wire object."""
        return objects.NetworkMetadata(physnets=set(self.physnets), tunneled=self.tunneled)


@dataclass(frozen=True, slots=True)
class HostCell:
    """One NUMA cell of a host.

    ``cpus`` are shared by floating guest CPUs, ``pcpus`` may be pinned; None means a host from
    before that distinction, all of whose ``cpus`` may be pinned.
    """

    id: int
    cpus: frozenset[int]
    pcpus: frozenset[int] | None
    memory_mb: int
    cpu_usage: int = 0
    memory_usage_mb: int = 0
    pinned: frozenset[int] = frozenset()
    siblings: tuple[frozenset[int], ...] = ()
    pages: tuple[Pages, ...] = ()
    networks: Networks | None = None
    socket: int | None = None

    @classmethod
    def of(cls, cell: objects.NUMACell) -> Self:
        """The value of a wire object."""
        metadata = cell.network_metadata
        return cls(
            id=cell.id,
            cpus=frozenset(cell.cpuset),
            pcpus=None if cell.pcpuset is None else frozenset(cell.pcpuset),
            memory_mb=cell.memory,
            cpu_usage=cell.cpu_usage,
            memory_usage_mb=cell.memory_usage,
            pinned=frozenset(cell.pinned_cpus),
            siblings=tuple(frozenset(group) for group in cell.siblings),
            pages=tuple(Pages(p.size_kb, p.total, p.used, p.reserved) for p in cell.mempages),
            networks=None if metadata is None else Networks.of(metadata),
            socket=cell.socket,
        )

    @property
    def pinnable(self) -> frozenset[int]:
        """The CPUs that guests may be pinned to, taken or not."""
        return self.cpus if self.pcpus is None else self.pcpus

    @property
    def free_pinnable(self) -> frozenset[int]:
        """Those that nobody is pinned to."""
        return self.pinnable - self.pinned

    @property
    def avail_memory_mb(self) -> int:
        """Memory that no guest uses; negative when overcommitted."""
        return self.memory_mb - self.memory_usage_mb

    @property
    def threads_per_core(self) -> int:
        """Size of the largest sibling set; 1 where none is listed."""
        return max(map(len, self.siblings), default=1)

    def to_object(self) -> objects.NUMACell:
        """The wire object; what is None is left out, as the host itself left it out."""
        optional: dict[str, Any] = {}
        if self.pcpus is not None:
            optional["pcpuset"] = set(self.pcpus)
        if self.networks is not None:
            optional["network_metadata"] = self.networks.to_object()
        if self.socket is not None:
            optional["socket"] = self.socket
        return objects.NUMACell(
            id=self.id,
            cpuset=set(self.cpus),
            memory=self.memory_mb,
            cpu_usage=self.cpu_usage,
            memory_usage=self.memory_usage_mb,
            pinned_cpus=set(self.pinned),
            siblings=[set(group) for group in self.siblings],
            mempages=[
                objects.NUMAPagesTopology(
                    size_kb=p.size_kb, total=p.total, used=p.used, reserved=p.reserved
                )
                for p in self.pages
            ],
            **optional,
        )


@dataclass(frozen=True, slots=True)
class HostTopology:
    """The NUMA cells of a host, in the order reported; false when there are none."""

    cells: tuple[HostCell, ...] = ()

    @classmethod
    def of(cls, topology: objects.NUMATopology) -> Self:
        """The value of a wire object."""
        return cls(tuple(map(HostCell.of, topology.cells)))

    @classmethod
    def from_text(cls, text: str | None) -> Self | None:
        """Read ``compute_nodes.numa_topology``; null gives None, as the host reports none.

        Raises InvalidRequest, IncompatibleObjectVersion or UnsupportedObjectError for a text
        that holds no host topology (section 2.4).
        """
        topology = objects.NUMATopology.from_text(text)
        return None if topology is None else cls.of(topology)

    def to_object(self) -> objects.NUMATopology:
        """The wire object."""
        return objects.NUMATopology(cells=[cell.to_object() for cell in self.cells])

    def to_text(self) -> str:
        """The JSON text of the envelope, as the column holds it."""
        return json.dumps(self.to_object().obj_to_primitive())

    def __len__(self) -> int:
        return len(self.cells)

    def around(self, chosen: frozenset[int]) -> Cells:
        """What PCI affinity needs to know when a guest is on the *chosen* cells."""
        return Cells(chosen, tuple((cell.id, cell.socket) for cell in self.cells))
