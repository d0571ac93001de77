"""The NUMA topologies of guests and hosts, and a host's limits, as immutable, hashable values.

One parsed document serves every host that reported the same text.  Accounting therefore builds
a new value and shares what stayed the same.  ``from_object`` takes a wire object, and
``to_object`` makes one.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from scheduler import objects
from scheduler.pci import Cells

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
        pins, cores = cell.cpu_pinning, cell.cpu_topology
        return cls(
            id=cell.id,
            floating=frozenset(cell.cpuset),
            dedicated=frozenset(cell.pcpuset),
            memory_mb=cell.memory,
            pagesize=cell.pagesize or None,
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
        return self.memory_mb * 1024

    @property
    def cpus(self) -> frozenset[int]:
        return self.floating | self.dedicated

    @property
    def pinned_to(self) -> frozenset[int]:
        """Host CPUs that the cell's CPUs have for themselves."""
        return frozenset(host for _guest, host in self.pins or ())

    def unplaced(self) -> Self:
        """The cell without its pins and reserved CPUs."""
        return replace(self, pins=None, reserved=frozenset())

    def to_object(self) -> objects.InstanceNUMACell:
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
        return cls(
            cells=tuple(map(GuestCell.from_object, topology.cells)),
            emulator_threads_policy=topology.emulator_threads_policy,
            instance_uuid=topology.instance_uuid,
        )

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def is_pinned(self) -> bool:
        return all(cell.is_pinned for cell in self.cells)

    def unplaced(self) -> Self:
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
        topology = objects.InstanceNUMATopology(cells=[cell.to_object() for cell in self.cells])
        if self.emulator_threads_policy is not None:
            topology.emulator_threads_policy = self.emulator_threads_policy
        if self.instance_uuid is not None:
            topology.instance_uuid = self.instance_uuid
        return topology


@dataclass(frozen=True, slots=True)
class Pages:
    """Memory pages of one size (KiB) in a cell."""

    size_kb: int
    total: int
    used: int = 0
    reserved: int = 0

    @property
    def free_kb(self) -> int:
        """Memory in pages that neither guests nor the host took, in KiB."""
        return (self.total - self.used - self.reserved) * self.size_kb


@dataclass(frozen=True, slots=True)
class Networks:
    """The physical networks, and possibly tunnels, tied to a cell or requested by a guest."""

    physnets: frozenset[str] = frozenset()
    tunneled: bool = False

    @classmethod
    def from_object(cls, metadata: objects.NetworkMetadata) -> Self:
        return cls(frozenset(metadata.physnets), bool(metadata.tunneled))

    def to_object(self) -> objects.NetworkMetadata:
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
    def from_object(cls, cell: objects.NUMACell) -> Self:
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
            networks=None if metadata is None else Networks.from_object(metadata),
            socket=cell.socket,
        )

    @property
    def pinnable(self) -> frozenset[int]:
        """The CPUs that guests may be pinned to, taken or not."""
        return self.cpus if self.pcpus is None else self.pcpus

    @property
    def free_pinnable(self) -> frozenset[int]:
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
            mempages=[objects.NUMAPagesTopology(**asdict(each)) for each in self.pages],
            **optional,
        )


@dataclass(frozen=True, slots=True)
class HostTopology:
    """The NUMA cells of a host, in the order reported; false when there are none."""

    cells: tuple[HostCell, ...] = ()

    @classmethod
    def from_object(cls, topology: objects.NUMATopology) -> Self:
        return cls(tuple(map(HostCell.from_object, topology.cells)))

    @classmethod
    def from_text(cls, text: str | None) -> Self | None:
        """Read ``compute_nodes.numa_topology``; null gives None, as the host reports none.

        Raises InvalidRequest, IncompatibleObjectVersion or UnsupportedObjectError for a text
        that holds no host topology (section 2.4).
        """
        topology = objects.NUMATopology.from_text(text)
        return None if topology is None else cls.from_object(topology)

    def to_object(self) -> objects.NUMATopology:
        return objects.NUMATopology(cells=[cell.to_object() for cell in self.cells])

    def to_text(self) -> str:
        """The JSON text of the envelope, as the column holds it."""
        return self.to_object().to_text()

    def __len__(self) -> int:
        return len(self.cells)

    def around(self, chosen: frozenset[int]) -> Cells:
        """The *chosen* cells and all sockets, as PCI affinity compares them."""
        return Cells(chosen, tuple((cell.id, cell.socket) for cell in self.cells))


@dataclass(frozen=True, slots=True)
class Limits:
    """The overcommit ratios of every cell, and the networks that the guest requests."""

    cpu_ratio: float
    ram_ratio: float
    networks: Networks | None = None

    @classmethod
    def from_object(cls, limits: objects.NUMATopologyLimits) -> Self:
        metadata = limits.network_metadata
        return cls(
            cpu_ratio=limits.cpu_allocation_ratio,
            ram_ratio=limits.ram_allocation_ratio,
            networks=None if metadata is None else Networks.from_object(metadata),
        )

    def to_object(self) -> objects.NUMATopologyLimits:
        limits = objects.NUMATopologyLimits(
            cpu_allocation_ratio=self.cpu_ratio, ram_allocation_ratio=self.ram_ratio
        )
        if self.networks is not None:
            limits.network_metadata = self.networks.to_object()
        return limits


def reachable(
    wanted: Networks | None, chosen: Sequence[HostCell], host: Sequence[HostCell]
) -> bool:
    """Test that a guest on the *chosen* cells reaches the networks it requests (section 10.2).

    A network tied to no cell of the *host* is reached from every cell.
    """
    if wanted is None:
        return True
    near = [cell.networks for cell in chosen if cell.networks is not None]
    tied = [cell.networks for cell in host if cell.networks is not None]
    missing = wanted.physnets.difference(*(networks.physnets for networks in near))
    if any(missing & networks.physnets for networks in tied):
        return False
    if not wanted.tunneled or any(networks.tunneled for networks in near):
        return True
    return not any(networks.tunneled for networks in tied)
