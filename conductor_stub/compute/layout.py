"""The NUMA cells and PCI devices of one host, given out to its guests.

A guest's cells are in its ``numa_topology`` once a host took it, its devices in its system
metadata.  Placing it is the scheduler's own function; the compute host has the last word only
because it knows all its guests.  Reference page numa_pci, sections 5 to 8 and 10.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oslo_log import log as logging

from conductor_stub.compute.profiles import HostKind, NumaCell, PciPool
from scheduler import errors, numa, objects, pci
from scheduler.hosts.consumption import LIMITS_KEY, Fitting, wish_of

LOG = logging.getLogger(__name__)

SMALL_PAGES_KB = 4
DEVICES_KEY = "compute_stub_pci_devices"
"""System metadata: the pools an instance has devices of, in JSON, ``count`` being how many."""


@dataclass(frozen=True)
class Place:
    """The cells of a guest, and its devices as in DEVICES_KEY; None where it has none."""

    topology: objects.InstanceNUMATopology | None = None
    devices: str | None = None


class Layout:
    """The cells and devices of a host of *kind*, given out in the way of *fitting*."""

    def __init__(self, kind: HostKind, fitting: Fitting) -> None:
        self._fitting = fitting
        self._host = _topology(kind.numa_cells) if kind.numa_cells else None
        self._pools = pci.Pools.from_object(map(_pool, kind.pci_pools))

    def columns(self, instances: Sequence[objects.Instance]) -> dict[str, str | None]:
        """The columns of the compute node that tell what *instances* leave."""
        host, pools = self._after(instances)
        return {
            "numa_topology": None if host is None else host.to_text(),
            "pci_stats": pools.to_text(),
        }

    def place(
        self,
        present: Sequence[objects.Instance],
        newcomer: objects.Instance,
        limits: Mapping[str, Any],
    ) -> Place:
        """A place for *newcomer* beside *present*; ComputeResourcesUnavailable if there is none."""
        wish = wish_of(newcomer, {LIMITS_KEY: _limits(limits)}, self._fitting)
        if wish is None:
            return Place()
        host, pools = self._after(present)
        placement = wish.place(host, pools)
        if host is not None and wish.guest is not None and placement.guest is None:
            raise errors.ComputeResourcesUnavailable(
                reason=f"{len(wish.guest)} NUMA cells requested, which do not fit on those here"
            )
        if placement.error is not None:
            wanted = ", ".join(str(each.alias_name or each.specs) for each in wish.requests)
            raise errors.ComputeResourcesUnavailable(
                reason=f"PCI devices {wanted or 'none'} requested: {placement.error}"
            )
        taken = [pool.to_dict() for pool in placement.taken]
        return Place(
            topology=placement.counted.to_object() if placement.counted else None,
            devices=json.dumps(taken) if taken else None,
        )

    def _after(
        self, instances: Sequence[objects.Instance]
    ) -> tuple[numa.HostTopology | None, pci.Pools]:
        host, taken = self._host, Counter[str]()
        for instance in instances:
            host = self._with(host, instance)
            for device in json.loads(instance.system_metadata.get(DEVICES_KEY) or "[]"):
                taken[_identity(device)] += device["count"]
        return host, _without(self._pools, taken)

    def _with(
        self, host: numa.HostTopology | None, instance: objects.Instance
    ) -> numa.HostTopology | None:
        if host is None or not instance.numa_topology:
            return host
        guest = numa.GuestTopology.from_object(instance.numa_topology)
        try:
            return numa.consume(host, guest, self._fitting.semantics)
        except errors.ResourcesNotBooked as error:
            LOG.warning("Instance %s does not count in any cell: %s", instance.uuid, error)
            return host


def _without(pools: pci.Pools, taken: Mapping[str, int]) -> pci.Pools:
    left = (
        pool.holding(pool.count - taken.get(_identity(pool.to_dict()), 0)) for pool in pools.pools
    )
    return pci.Pools(tuple(pool for pool in left if pool.count > 0))


def _identity(pool: Mapping[str, Any]) -> str:
    """Everything but the number of devices."""
    return json.dumps({key: value for key, value in pool.items() if key != "count"}, sort_keys=True)


def _limits(limits: Mapping[str, Any]) -> objects.NUMATopologyLimits | None:
    """The limits of cells, whatever form the caller's release gives them."""
    of_cells = {LIMITS_KEY: limits.get(LIMITS_KEY)}
    found: objects.NUMATopologyLimits | None = objects.SchedulerLimits.from_dict(
        of_cells
    ).numa_topology
    return found


def _topology(cells: Sequence[NumaCell]) -> numa.HostTopology:
    return numa.HostTopology(
        tuple(
            numa.HostCell(
                id=number,
                cpus=cell.cpus,
                pcpus=cell.cpus,
                memory_mb=cell.memory_mb,
                siblings=cell.siblings or tuple(frozenset({cpu}) for cpu in sorted(cell.cpus)),
                pages=_pages(cell),
                socket=cell.socket,
            )
            for number, cell in enumerate(cells)
        )
    )


def _pages(cell: NumaCell) -> tuple[numa.Pages, ...]:
    """Those of the profile; a cell that lists none has all its memory in small ones."""
    pages = cell.pages or {SMALL_PAGES_KB: cell.memory_mb * 1024 // SMALL_PAGES_KB}
    return tuple(numa.Pages(size_kb, total) for size_kb, total in sorted(pages.items()))


def _pool(pool: PciPool) -> objects.PciDevicePool:
    return objects.PciDevicePool(**{**vars(pool), "tags": dict(pool.tags)})
