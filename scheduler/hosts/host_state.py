"""HostState: one row of the host table under the attribute names of Nova's class.

A third-party filter or weigher written against Nova reads and writes these attributes; reading
and writing goes straight to the table (reference page scheduling, section 6).
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from scheduler import objects, pci
from scheduler.hosts import columns, consumption
from scheduler.hosts.table import NEVER, HostTable
from scheduler.numa import HostTopology

_NOTHING: Mapping[str, Any] = MappingProxyType({})


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
        """True when all *requests* can be served together, near the host cells of *numa_cells*."""
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


class HostState:
    """A view of one row.  ``limits`` belongs to the decision (*scope*) the view was made for."""

    def __init__(self, table: HostTable, row: int, scope: Any) -> None:
        self.table = table
        self.row = row
        self.scope = scope
        self.limits: dict[str, Any] = {}

    @property
    def service(self) -> Mapping[str, Any]:
        """Read-only copy of the service record."""
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
    def hypervisor_hostname(self) -> str | None:
        """The node name, under the column's own name."""
        return self.nodename

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
        pools = self.table.value(self.row, consumption.POOLS)
        if pools is None:
            return None
        topology = self.table.value(self.row, consumption.TOPOLOGY)
        return PciStats(pools, topology, self._fitting.semantics.pci)

    @property
    def _fitting(self) -> consumption.Fitting:
        return consumption.Fitting() if self.scope is None else self.scope.fitting

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
        amount = consumption.Consumption.from_request(spec_obj, self.limits, self._fitting)
        hardware = consumption.take(self.table, self.row, amount)
        if hardware is not None:
            consumption.hand_over(self.table, self.row, hardware, spec_obj)

    def __repr__(self) -> str:
        return (
            f"({self.host}, {self.nodename}) ram: {self.free_ram_mb}MB "
            f"disk: {self.free_disk_mb}MB io_ops: {self.num_io_ops} "
            f"instances: {self.num_instances}"
        )

    host = _Column("host")
    nodename = _Column("nodename")
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
