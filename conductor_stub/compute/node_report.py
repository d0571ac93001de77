"""The columns of a compute node, and the place that its guests get on it.

Usage is the sum over the instances there are; nothing is counted up or down, so the columns
cannot drift from the instances.  A guest's cells are in its ``numa_topology`` once a host took it,
its devices in its system metadata.  Placing it is the scheduler's own function; the compute host
has the last word only because it knows all its guests.  Reference pages database, sections 3.1
and 5, scheduling, section 6.1, and numa_pci, sections 5 to 8 and 10.
"""

import dataclasses
import datetime
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging

from conductor_stub.compute.profiles import HostKind, HostPlan, NumaCell
from scheduler import errors, numa, objects, pci
from scheduler.hosts.host_state import LIMITS_KEY, Fitting, wish_of

LOG = logging.getLogger(__name__)

IO_TASKS = {
    *("resize_migrating", "rebuilding", "resize_prep", "image_snapshot", "image_backup"),
    *("rescuing", "unshelving"),
}
SMALL_PAGES_KB = 4
DEVICES_KEY = "compute_stub_pci_devices"
"""System metadata: the pools an instance has devices of, in JSON, ``count`` being how many."""
KIND_COLUMNS = ("vcpus", "memory_mb", "local_gb", "hypervisor_type", "hypervisor_version")
"""Columns that hold what the profile says."""


@dataclasses.dataclass(frozen=True)
class Place:
    """The cells of a guest, and its devices as in DEVICES_KEY; None where it has none."""

    topology: objects.InstanceNUMATopology | None = None
    devices: str | None = None


class NodeReport:
    """The node of *plan*'s host, which has one node of its own name; *clock* gives naive UTC."""

    def __init__(
        self, plan: HostPlan, conf: cfg.ConfigOpts, clock: Callable[[], datetime.datetime]
    ) -> None:
        self.host = plan.name
        self._kind = plan.kind
        #: The host keeps some for itself, which it reports as used; a begun GB counts whole.
        disk_gb = -(-conf.reserved_host_disk_mb // 1024)
        self._reserved = {"memory_mb": conf.reserved_host_memory_mb, "disk_gb": disk_gb}
        self._host_ip = conf.my_ip
        self.clock = clock
        self._fitting = Fitting.from_conf(conf)
        cells = plan.kind.numa_cells
        self._cells = _topology(cells) if cells else None
        pools = [
            objects.PciDevicePool(**{**vars(pool), "tags": dict(pool.tags or {})})
            for pool in plan.kind.pci_pools
        ]
        self._pools = pci.Pools.from_object(pools)
        self.needs_places = bool(cells or pools)

    def columns(self, instances: Sequence[Any], failed_builds: int) -> dict[str, Any]:
        """All columns, with those that follow from the *instances* on the host."""
        kind, used = self._kind, self._used(instances)
        cells, pools = self._left_by(instances)
        free_disk_gb = kind.local_gb - used["disk_gb"]
        return {
            "host": self.host,
            "hypervisor_hostname": self.host,
            **{name: getattr(kind, name) for name in KIND_COLUMNS},
            **{f"{name}_allocation_ratio": ratio for name, ratio in vars(kind.ratios).items()},
            "host_ip": self._host_ip,
            "cpu_info": cpu_info(kind),
            "supported_instances": json.dumps([list(each) for each in kind.supported_instances]),
            "metrics": metrics(kind, self.clock()),
            "vcpus_used": used["vcpu"],
            "memory_mb_used": used["memory_mb"],
            "local_gb_used": used["disk_gb"],
            "free_ram_mb": kind.memory_mb - used["memory_mb"],
            "free_disk_gb": free_disk_gb,
            "disk_available_least": free_disk_gb,
            "current_workload": sum(each.task_state is not None for each in instances),
            "running_vms": len(instances),
            "stats": stats(instances, failed_builds, kind.stats or {}),
            "numa_topology": None if cells is None else cells.to_text(),
            "pci_stats": pools.to_text(),
        }

    def place(
        self, present: Sequence[Any], newcomer: objects.Instance, limits: Mapping[str, Any]
    ) -> Place:
        """A place for *newcomer* beside *present*; ComputeResourcesUnavailable if there is none.

        *limits* are what the scheduler's filters noted for the host, overcommit included.  A
        resource without one is not checked at all: the scheduler did not filter on it (or was
        told to use this host), and its word counts.
        """
        have, wanted = self._used(present), amounts_of(newcomer)
        broken = [
            f"{wanted[name]} {what} requested, {int(limits[name]) - have[name]} free"
            for name, what in NAMES.items()
            if limits.get(name) is not None and have[name] + wanted[name] > limits[name]
        ]
        if broken:
            raise errors.ComputeResourcesUnavailable(reason="; ".join(broken))
        # The limits of cells have the form of the caller's release.
        of_cells = objects.SchedulerLimits.from_dict({LIMITS_KEY: limits.get(LIMITS_KEY)})
        numa_limits = {LIMITS_KEY: of_cells.numa_topology}
        wish = wish_of(newcomer, numa_limits, self._fitting)
        return Place() if wish is None else _placed(wish, *self._left_by(present))

    def _used(self, instances: Sequence[Any]) -> Counter[str]:
        """The usage of *instances* and the host itself."""
        total = Counter(self._reserved)
        for instance in instances:
            total.update(amounts_of(instance))
        return total

    def _left_by(
        self, instances: Sequence[objects.Instance]
    ) -> tuple[numa.HostTopology | None, pci.Pools]:
        """The cells and devices that *instances* leave."""
        cells, taken = self._cells, Counter[str]()
        for instance in instances if self.needs_places else ():
            cells = self._with(cells, instance)
            for device in json.loads(instance.system_metadata.get(DEVICES_KEY) or "[]"):
                taken[_identity(device)] += device["count"]
        left = (
            pool.holding(pool.count - taken[_identity(pool.to_dict())])
            for pool in self._pools.pools
        )
        return cells, pci.Pools(tuple(pool for pool in left if pool.count > 0))

    def _with(
        self, cells: numa.HostTopology | None, instance: objects.Instance
    ) -> numa.HostTopology | None:
        if cells is None or not instance.numa_topology:
            return cells
        guest = numa.GuestTopology.from_object(instance.numa_topology)
        try:
            return numa.consume(cells, guest, self._fitting.semantics)
        except errors.ResourcesNotBooked as error:
            LOG.warning("Instance %s does not count in any cell: %s", instance.uuid, error)
            return cells


NAMES = {"memory_mb": "MB of memory", "disk_gb": "GB of disk", "vcpu": "vcpus"}
"""The resources that are counted, by the names of their limits."""


def amounts_of(instance: Any) -> dict[str, int]:
    """The usage of one instance.  Its swap disk does not count, as in Nova."""
    disk_gb = (instance.root_gb or 0) + (instance.ephemeral_gb or 0)
    return {"vcpu": instance.vcpus or 0, "memory_mb": instance.memory_mb or 0, "disk_gb": disk_gb}


def stats(instances: Sequence[Any], failed_builds: int, extra: Mapping[str, str]) -> dict[str, str]:
    """The ``stats`` document: counters of the instances, all values as text."""
    counts: Counter[str] = Counter(
        num_instances=len(instances), io_workload=0, failed_builds=failed_builds
    )
    for instance in instances:
        counts[f"num_vm_{instance.vm_state}"] += 1
        counts[f"num_task_{instance.task_state}"] += 1
        counts[f"num_os_type_{instance.os_type}"] += 1
        counts[f"num_proj_{instance.project_id}"] += 1
        counts["io_workload"] += instance.vm_state == "building"
        counts["io_workload"] += instance.task_state in IO_TASKS
    return {**extra, **{name: str(count) for name, count in counts.items()}}


def cpu_info(kind: HostKind) -> str:
    """The profile's own, or a plain processor with the kind's number of cores."""
    if kind.cpu_info is not None:
        return json.dumps(kind.cpu_info)
    cells = len(kind.numa_cells) or 1
    topology = {"cells": cells, "sockets": 1, "cores": kind.vcpus // cells, "threads": 1}
    model = {"vendor": "Intel", "model": "Broadwell", "arch": "x86_64", "features": []}
    return json.dumps({**model, "topology": topology})


def metrics(kind: HostKind, now: datetime.datetime) -> str:
    """The kind's metrics as measured *now*; values are stored as the profile has them."""
    measured: list[dict[str, Any]] = [
        {"name": name, "value": value, "timestamp": now.isoformat(), "source": "stub"}
        for name, value in (kind.metrics or {}).items()
    ]
    return json.dumps(measured)


def _placed(wish: numa.Wish, cells: numa.HostTopology | None, pools: pci.Pools) -> Place:
    placement = wish.place(cells, pools)
    if cells is not None and wish.guest is not None and placement.guest is None:
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


def _identity(pool: Mapping[str, Any]) -> str:
    """Everything but the number of devices."""
    return json.dumps({key: value for key, value in pool.items() if key != "count"}, sort_keys=True)


def _topology(cells: Sequence[NumaCell]) -> numa.HostTopology:
    """The cells of the profile; one that lists no pages has all its memory in small ones."""
    made = []
    for number, cell in enumerate(cells):
        pages = cell.pages or {SMALL_PAGES_KB: cell.memory_mb * 1024 // SMALL_PAGES_KB}
        made.append(
            numa.HostCell(
                id=number,
                cpus=cell.cpus,
                pcpus=cell.cpus,
                memory_mb=cell.memory_mb,
                siblings=cell.siblings or tuple(frozenset({cpu}) for cpu in sorted(cell.cpus)),
                pages=tuple(numa.Pages(size, total) for size, total in sorted(pages.items())),
                socket=cell.socket,
            )
        )
    return numa.HostTopology(tuple(made))
