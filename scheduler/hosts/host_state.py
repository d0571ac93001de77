"""One row of the host table under the names of Nova's class, and what an instance takes of it.

A third-party filter or weigher written against Nova reads and writes the attributes of HostState;
reading and writing goes straight to the table.  Reference pages scheduling, sections 5.8 and 6,
and numa_pci, sections 8.3 and 10.3.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from oslo_log import log as logging

from scheduler import numa, objects, pci, semantics
from scheduler.hosts import columns
from scheduler.hosts.columns import ADDED_BY_RESERVATIONS, NEVER
from scheduler.hosts.table import HostTable
from scheduler.numa import HostTopology

LOG = logging.getLogger(__name__)

_NOTHING: Mapping[str, Any] = MappingProxyType({})

TOPOLOGY, POOLS = "numa_topology", "pci_stats"
#: Key of the limits that concern cells.
LIMITS_KEY = "numa_topology"


class Fitting(numa.Rules):
    """Rules for giving out cells and devices."""

    __slots__ = ()

    @classmethod
    def from_conf(cls, conf: Any) -> Fitting:
        """The rules that ``[scheduler] semantics`` and ``[compute]`` choose."""
        pack = conf.compute.packing_host_numa_cells_allocation_strategy
        return cls(semantics.from_conf(conf).numa, pack)


@dataclass(frozen=True, slots=True)
class Consumption:
    """Resources of one instance; swap is not consumed."""

    ram_mb: int
    disk_mb: int
    vcpus: int
    #: Cells and devices, for the few that want any.
    wish: numa.Wish | None = None

    @property
    def added(self) -> Mapping[str, int]:
        """Amounts that it adds to the columns of its row."""
        changes = -self.ram_mb, -self.disk_mb, self.vcpus, 1, 1
        return dict(zip(ADDED_BY_RESERVATIONS, changes, strict=True))

    @classmethod
    def from_request(cls, spec_obj: Any, limits: Mapping[str, Any], how: Fitting) -> Consumption:
        """Amounts that one instance of the request takes of a host with *limits*."""
        wish = wish_of(spec_obj, limits, how)
        disk_mb = (spec_obj.root_gb + spec_obj.ephemeral_gb) * 1024
        return cls(spec_obj.memory_mb, disk_mb, spec_obj.vcpus, wish)


def guest_of(spec_obj: Any) -> numa.GuestTopology | None:
    """The cells that the request asks for; None if for none."""
    topology = spec_obj.numa_topology
    return numa.GuestTopology.from_object(topology) if topology else None


def wish_of(spec_obj: Any, limits: Mapping[str, Any], how: Fitting) -> numa.Wish | None:
    """The wish of the request under the *limits* of its host; None if for nothing."""
    wanted = spec_obj.pci_requests
    if spec_obj.numa_topology is None and not (wanted and wanted.requests):
        return None
    guest, requests = guest_of(spec_obj), pci.requests_of(wanted)
    if guest is None and not requests:
        return None
    of_cells = limits.get(LIMITS_KEY)
    ratios = None if of_cells is None else numa.Limits.from_object(of_cells)
    return numa.Wish(guest, requests, ratios, how)


def networks_of(spec_obj: Any) -> numa.Networks | None:
    """The networks that the cells should be near, if the request says so."""
    metadata = spec_obj.get("network_metadata")
    return None if metadata is None else numa.Networks.from_object(metadata)


def consume(table: HostTable, row: int, amount: Consumption) -> numa.Placement | None:
    """Consume *amount* on *row*; where its cells and devices are, if it wants any.

    Every instance takes all of a bare-metal node, of which neither is known.  One that did not get
    all that it wants does not count among the I/O operations.
    """
    if table.column("bare_metal")[row]:
        vcpus = table.value(row, "vcpus_total")
        table.update(row, {"free_ram_mb": 0, "free_disk_mb": 0, "vcpus_used": vcpus})
        return None
    table.add([row], amount.added)
    if amount.wish is None:
        return None
    host, pools = table.value(row, TOPOLOGY), table.value(row, POOLS)
    placement = amount.wish.place(host, pools)
    for name, old, new in ((TOPOLOGY, host, placement.host), (POOLS, pools, placement.pools)):
        if new is not old:
            table.update(row, {name: new})
    if placement.error is not None:
        table.add([row], {"num_io_ops": -1})
    return placement


def hand_over(table: HostTable, row: int, placement: numa.Placement, spec_obj: Any) -> None:
    """Log what went wrong; the next instance of the request starts from where this one is."""
    if placement.error is not None:
        LOG.warning(
            "Selected host: %s failed to consume from instance. Error: %s",
            table.value(row, "host"),
            placement.error,
        )
    if spec_obj.numa_topology is not None:
        guest = placement.guest
        spec_obj.numa_topology = None if guest is None else guest.to_object()


class _Column:
    """A HostState attribute that lives in a column, document or object list of the table."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, state: HostState | None, owner: type) -> Any:
        if state is None:
            return self
        return state.table.value(state.row, self.name)

    def __set__(self, state: HostState, value: Any) -> None:
        key = (state.host, state.nodename)
        state.table.put(key, {self.name: value})


class _Topology(_Column):
    """The host's NUMA cells as Nova's object; may be set to that, to text or to None."""

    def __get__(self, state: HostState | None, owner: type) -> Any:
        value = super().__get__(state, owner)
        return value.to_object() if isinstance(value, HostTopology) else value

    def __set__(self, state: HostState, value: Any) -> None:
        if isinstance(value, objects.NUMATopology):
            value = HostTopology.from_object(value)
        super().__set__(state, value)


class PciStats:
    """A view of pools; always true, as Nova's object is."""

    def __init__(
        self, pools: pci.Pools, host: HostTopology | None, chosen: pci.PciSemantics
    ) -> None:
        self._pools = pools
        self._host = host or HostTopology()
        self._semantics = chosen

    @property
    def pools(self) -> list[dict[str, Any]]:
        """Every pool with the tags of its devices and their ``count``."""
        return self._pools.to_dicts()

    def support_requests(
        self,
        requests: Iterable[objects.InstancePCIRequest],
        numa_cells: Sequence[objects.InstanceNUMACell] | None = None,
    ) -> bool:
        """True when all *requests* can be served together, near the host cells of *numa_cells*."""
        wanted = tuple(map(pci.Request.from_object, requests))
        cells = None
        if numa_cells:
            cells = self._host.around(frozenset(cell.id for cell in numa_cells))
        return pci.supports(self._pools, wanted, cells, self._semantics)

    def to_device_pools_obj(self) -> objects.PciDevicePoolList:
        return self._pools.to_object()

    def __repr__(self) -> str:
        return f"PciStats({self.pools})"


class HostState:
    """A view of one row.  ``limits`` belongs to the decision (*scope*) the view was made for."""

    def __init__(self, table: HostTable, row: int, scope: Any) -> None:
        self.table = table
        self.row = row
        self.scope = scope
        self.limits: dict[str, Any] = {}

    @property
    def service(self) -> Mapping[str, Any]:
        return self.table.service(self.row)

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """Read-only: what the node last said of itself, if it is of Havana's kind."""
        return self.table.capabilities.get((self.host, self.nodename), _NOTHING)

    @property
    def instances(self) -> dict[str, Any]:
        """Instances on the host (all its nodes), uuid to instance; none on bare metal."""
        if self.table.column("bare_metal")[self.row]:
            return {}
        return self.table.instances.get(self.host, {})

    @property
    def updated(self) -> datetime.datetime | None:
        """When the compute node last reported, in UTC, or None."""
        seconds = self.table.value(self.row, "updated_at")
        if seconds == NEVER:
            return None
        return datetime.datetime.fromtimestamp(seconds, datetime.UTC)

    @property
    def pci_stats(self) -> PciStats | None:
        """The free PCI devices; None where the host never reported."""
        pools = self.table.value(self.row, POOLS)
        if pools is None:
            return None
        topology = self.table.value(self.row, TOPOLOGY)
        return PciStats(pools, topology, self._fitting.semantics.pci)

    @property
    def _fitting(self) -> Fitting:
        return Fitting() if self.scope is None else self.scope.fitting

    @property
    def allocation_candidates(self) -> list[Any]:
        """Placement's offers to choose from: none, as the first one is claimed."""
        return []

    @property
    def _lock_name(self) -> tuple[str, str | None]:
        """The name of Nova's lock of the host; here the host manager has one for all."""
        return self.host, self.nodename

    def consume_from_request(self, spec_obj: Any) -> None:
        """Take the request's resources from this row (scheduling page, section 6.4)."""
        amount = Consumption.from_request(spec_obj, self.limits, self._fitting)
        hardware = consume(self.table, self.row, amount)
        if hardware is not None:
            hand_over(self.table, self.row, hardware, spec_obj)

    def __repr__(self) -> str:
        return (
            f"({self.host}, {self.nodename}) ram: {self.free_ram_mb}MB "
            f"disk: {self.free_disk_mb}MB io_ops: {self.num_io_ops} "
            f"instances: {self.num_instances}"
        )

    host = _Column("host")
    nodename = hypervisor_hostname = _Column("nodename")
    numa_topology = _Topology("numa_topology")

    if TYPE_CHECKING:  # the attributes set below

        def __getattr__(self, name: str) -> Any: ...


for _name in (
    *columns.INT_COLUMNS,
    *columns.FLOAT_COLUMNS,
    *columns.DOCUMENT_PARSERS,
    *columns.TEXT_COLUMNS,
):
    if not hasattr(HostState, _name):
        setattr(HostState, _name, _Column(_name))
