"""Resources, cells and devices that one instance takes from its host.

Reference pages scheduling, sections 5.8 and 6.4, and numa_pci, sections 8.3 and 10.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oslo_log import log as logging

from scheduler import numa, pci, semantics
from scheduler.hosts.columns import ADDED_BY_RESERVATIONS
from scheduler.hosts.table import HostTable

LOG = logging.getLogger(__name__)

TOPOLOGY, POOLS = "numa_topology", "pci_stats"
#: Key of the limits that concern cells.
LIMITS_KEY = "numa_topology"


class Fitting(numa.Rules):
    """Rules for giving out cells and devices."""

    __slots__ = ()

    @classmethod
    def from_conf(cls, conf: Any) -> Fitting:
        """As ``[scheduler] semantics`` and ``[compute]`` choose."""
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
    guest, requests = guest_of(spec_obj), pci.requests_of(spec_obj.pci_requests)
    if guest is None and not requests:
        return None
    of_cells = limits.get(LIMITS_KEY)
    ratios = None if of_cells is None else numa.Limits.from_object(of_cells)
    return numa.Wish(guest, requests, ratios, how)


def networks_of(spec_obj: Any) -> numa.Networks | None:
    """The networks that the cells should be near, if the request says so."""
    metadata = spec_obj.get("network_metadata")
    return None if metadata is None else numa.Networks.from_object(metadata)


def take(table: HostTable, row: int, amount: Consumption) -> numa.Placement | None:
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
