"""Cells and devices of a host that one instance takes, and giving them back exactly.

Reference page numa_pci, sections 8.3 and 10.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oslo_log import log as logging

from scheduler import numa, pci, semantics
from scheduler.hosts.table import HostTable

LOG = logging.getLogger(__name__)

TOPOLOGY, POOLS = "numa_topology", "pci_stats"
#: Key of the limits that concern cells.
LIMITS_KEY = "numa_topology"


@dataclass(frozen=True, slots=True)
class Fitting:
    """How cells and devices are given out; *pack* fills one cell before the next."""

    semantics: numa.NumaSemantics = numa.CURRENT
    pack: bool = False

    @classmethod
    def from_conf(cls, conf: Any) -> Fitting:
        """What ``[scheduler] semantics`` and ``[compute]`` choose."""
        pack = conf.compute.packing_host_numa_cells_allocation_strategy
        return cls(semantics.from_conf(conf).numa, pack)


@dataclass(frozen=True, slots=True)
class Wish:
    """The cells and devices that one instance asks for, and how far cells may be overcommitted."""

    guest: numa.GuestTopology | None
    requests: tuple[pci.Request, ...]
    limits: numa.Limits | None
    fitting: Fitting

    @classmethod
    def of(cls, spec_obj: Any, limits: Mapping[str, Any], fitting: Fitting) -> Wish | None:
        """What the request asks for under the *limits* of its host; None if for nothing."""
        guest, requests = guest_of(spec_obj), pci.requests_of(spec_obj.pci_requests)
        if guest is None and not requests:
            return None
        of_cells = limits.get(LIMITS_KEY)
        ratios = None if of_cells is None else numa.Limits.from_object(of_cells)
        return cls(guest, requests, ratios, fitting)

    def place(self, host: numa.HostTopology | None, pools: pci.Pools | None) -> numa.Placement:
        """Where it goes on a host with these cells and pools."""
        how = self.fitting
        return numa.place(
            host, self.guest, self.limits, self.requests, pools, how.semantics, pack=how.pack
        )


@dataclass(frozen=True, slots=True)
class Booking:
    """What a wish has done to a row, and the documents of the row from before it."""

    placement: numa.Placement
    before: Mapping[str, Any]


def guest_of(spec_obj: Any) -> numa.GuestTopology | None:
    """The cells that the request asks for; None if for none."""
    topology = spec_obj.numa_topology
    return numa.GuestTopology.from_object(topology) if topology else None


def networks_of(spec_obj: Any) -> numa.Networks | None:
    """The networks that the cells should be near, if the request says so."""
    metadata = spec_obj.get("network_metadata")
    return None if metadata is None else numa.Networks.from_object(metadata)


def book(table: HostTable, row: int, wish: Wish) -> Booking:
    """Take what is wished for, as far as it is there.

    An instance that could not be booked in full does not count among the I/O operations.
    """
    host, pools = table.value(row, TOPOLOGY), table.value(row, POOLS)
    placement = wish.place(host, pools)
    before = {}
    for name, old, new in ((TOPOLOGY, host, placement.host), (POOLS, pools, placement.pools)):
        if new is not old:
            before[name] = table.content(row, name)
            table.set_document(row, name, new)
    if placement.error is not None:
        table.add(row, {"num_io_ops": -1})
    return Booking(placement, before)


def give_back(table: HostTable, row: int, booking: Booking) -> None:
    """Undo the last booking on *row*."""
    for name, content in booking.before.items():
        table.set_document(row, name, content)
    if booking.placement.error is not None:
        table.add(row, {"num_io_ops": 1})


def hand_over(table: HostTable, row: int, booking: Booking, spec_obj: Any) -> None:
    """Tell what went wrong, and make the next instance of the request start from this one."""
    placement = booking.placement
    if placement.error is not None:
        LOG.warning(
            "Selected host: %s failed to consume from instance. Error: %s",
            table.value(row, "host"),
            placement.error,
        )
    if spec_obj.numa_topology is not None:
        guest = placement.guest
        spec_obj.numa_topology = None if guest is None else guest.to_object()
