"""The NUMA topology of a guest as an immutable, hashable value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from scheduler import objects

PINNED_POLICIES = ("dedicated", "mixed")

#: Requested page sizes (section 1.2); anything above zero is a size in KiB.
SMALL_PAGES, LARGE_PAGES, ANY_PAGES = -1, -2, -3


@dataclass(frozen=True, slots=True)
class GuestCell:
    """One NUMA cell of a guest.

    ``id`` is the guest cell's number before fitting and the host cell's id after it.  ``pins``
    pairs guest CPUs with host CPUs; ``cores`` is what the guest sees as (cores, threads).
    """

    id: int
    floating: frozenset[int]
    dedicated: frozenset[int]
    memory_mb: int
    pagesize: int | None = None
    policy: str | None = None
    thread_policy: str | None = None
    pins: tuple[tuple[int, int], ...] | None = None
    reserved: frozenset[int] = frozenset()
    cores: tuple[int, int] | None = None

    @classmethod
    def from_object(cls, cell: objects.InstanceNUMACell) -> Self:
        """The value of a wire object."""
        pins, cores = cell.cpu_pinning, cell.cpu_topology
        return cls(
            id=cell.id,
            floating=frozenset(cell.cpuset),
            dedicated=frozenset(cell.pcpuset),
            memory_mb=cell.memory,
            pagesize=cell.pagesize,
            policy=cell.cpu_policy,
            thread_policy=cell.cpu_thread_policy,
            pins=None if pins is None else tuple(sorted(pins.items())),
            reserved=frozenset(cell.cpuset_reserved or ()),
            cores=None if cores is None else (cores.cores, cores.threads),
        )

    @property
    def is_pinned(self) -> bool:
        """True for a cell whose CPUs need host CPUs of their own."""
        return self.policy in PINNED_POLICIES

    @property
    def memory_kb(self) -> int:
        """Memory in KiB."""
        return self.memory_mb * 1024

    @property
    def cpus(self) -> frozenset[int]:
        """All CPUs of the cell."""
        return self.floating | self.dedicated

    @property
    def pinned_to(self) -> frozenset[int]:
        """Host CPUs that the cell's CPUs have for themselves."""
        return frozenset(host for _guest, host in self.pins or ())

    def unplaced(self) -> Self:
        """The cell without its pins and reserved CPUs."""
        return replace(self, pins=None, reserved=frozenset())

    def to_object(self) -> objects.InstanceNUMACell:
        """The wire object."""
        cell = objects.InstanceNUMACell(
            id=self.id,
            cpuset=set(self.floating),
            pcpuset=set(self.dedicated),
            memory=self.memory_mb,
            pagesize=self.pagesize,
            cpu_policy=self.policy,
            cpu_thread_policy=self.thread_policy,
            cpuset_reserved=set(self.reserved) or None,
        )
        cell.cpu_pinning = None if self.pins is None else dict(self.pins)
        if self.cores is not None:
            cores, threads = self.cores
            cell.cpu_topology = objects.VirtCPUTopology(sockets=1, cores=cores, threads=threads)
        return cell


@dataclass(frozen=True, slots=True)
class GuestTopology:
    """The NUMA cells of a guest in their order; false when there are none."""

    cells: tuple[GuestCell, ...] = ()
    emulator_threads_policy: str | None = None
    instance_uuid: str | None = None

    @classmethod
    def from_object(cls, topology: objects.InstanceNUMATopology) -> Self:
        """The value of a wire object."""
        return cls(
            cells=tuple(map(GuestCell.from_object, topology.cells)),
            emulator_threads_policy=topology.emulator_threads_policy,
            instance_uuid=topology.instance_uuid,
        )

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def is_pinned(self) -> bool:
        """True when every cell is pinned."""
        return all(cell.is_pinned for cell in self.cells)

    @property
    def isolates_emulator(self) -> bool:
        """True when the emulator's threads need a host CPU of their own, beside cell 0."""
        return self.emulator_threads_policy == "isolate"

    def unplaced(self) -> GuestTopology:
        """The guest without what a fit settled, except its page sizes."""
        cells = tuple(
            replace(cell.unplaced(), id=number, cores=None)
            for number, cell in enumerate(self.cells)
        )
        return replace(self, cells=cells)

    @property
    def cell_ids(self) -> frozenset[int]:
        """Ids of all cells; after a fit, those of the host's cells."""
        return frozenset(cell.id for cell in self.cells)

    def to_object(self) -> objects.InstanceNUMATopology:
        """The wire object."""
        topology = objects.InstanceNUMATopology(cells=[cell.to_object() for cell in self.cells])
        if self.emulator_threads_policy is not None:
            topology.emulator_threads_policy = self.emulator_threads_policy
        if self.instance_uuid is not None:
            topology.instance_uuid = self.instance_uuid
        return topology
