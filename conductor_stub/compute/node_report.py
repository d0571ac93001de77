"""The columns of a compute node: usage, documents, and the check of one more guest.

Usage is the sum over the instances there are; nothing is counted up or down, so the columns
cannot drift from the instances.  Reference pages database, sections 3.1 and 5, and scheduling,
section 6.1.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from conductor_stub.compute.layout import Layout, Place
from conductor_stub.compute.profiles import HostKind, HostPlan
from scheduler import errors
from scheduler.hosts.consumption import Fitting

IO_TASKS = {
    *("resize_migrating", "rebuilding", "resize_prep", "image_snapshot", "image_backup"),
    *("rescuing", "unshelving"),
}


@dataclasses.dataclass(frozen=True)
class Reserved:
    """Resources that every host keeps for itself; they are reported as used."""

    memory_mb: int = 0
    disk_gb: int = 0

    @classmethod
    def from_conf(cls, conf: Any) -> Reserved:
        """The ``reserved_host_*`` options; a begun GB of disk counts whole."""
        return cls(conf.reserved_host_memory_mb, -(-conf.reserved_host_disk_mb // 1024))


@dataclasses.dataclass(frozen=True)
class Amounts:
    """Amounts of the three countable resources."""

    vcpus: int = 0
    memory_mb: int = 0
    disk_gb: int = 0

    @classmethod
    def from_instance(cls, instance: Any) -> Amounts:
        """The usage of one instance.  Its swap disk does not count, as in Nova."""
        return cls(
            vcpus=instance.vcpus or 0,
            memory_mb=instance.memory_mb or 0,
            disk_gb=(instance.root_gb or 0) + (instance.ephemeral_gb or 0),
        )

    def __add__(self, other: Amounts) -> Amounts:
        mine, theirs = dataclasses.astuple(self), dataclasses.astuple(other)
        return Amounts(*map(sum, zip(mine, theirs, strict=True)))


def used(instances: Iterable[Any], reserved: Reserved) -> Amounts:
    """The usage of *instances* and the host itself."""
    total = Amounts(0, reserved.memory_mb, reserved.disk_gb)
    for instance in instances:
        total += Amounts.from_instance(instance)
    return total


def check_limits(present: Amounts, wanted: Amounts, limits: Mapping[str, Any]) -> None:
    """Raise ``ComputeResourcesUnavailable`` if *wanted* on top of *present* breaks a limit.

    *limits* are what the scheduler's filters noted for the host: ``memory_mb``, ``disk_gb``,
    ``vcpu``, overcommit included.  A resource without a limit is not checked at all: the
    scheduler did not filter on it (or was told to use this host), and its word counts.
    """
    rows = (
        ("MB of memory", "memory_mb", present.memory_mb, wanted.memory_mb),
        ("GB of disk", "disk_gb", present.disk_gb, wanted.disk_gb),
        ("vcpus", "vcpu", present.vcpus, wanted.vcpus),
    )
    broken = [
        f"{more} {what} requested, {int(limits[key]) - have} free"
        for what, key, have, more in rows
        if limits.get(key) is not None and have + more > limits[key]
    ]
    if broken:
        raise errors.ComputeResourcesUnavailable(reason="; ".join(broken))


def usage_columns(
    capacity: Any, instances: Sequence[Any], reserved: Reserved
) -> dict[str, int | None]:
    """The usage columns of a compute node with *capacity*'s vcpus, memory_mb and local_gb."""
    total = used(instances, reserved)
    free_disk_gb = capacity.local_gb - total.disk_gb
    return {
        "vcpus_used": total.vcpus,
        "memory_mb_used": total.memory_mb,
        "local_gb_used": total.disk_gb,
        "free_ram_mb": capacity.memory_mb - total.memory_mb,
        "free_disk_gb": free_disk_gb,
        "disk_available_least": free_disk_gb,
        "current_workload": sum(1 for i in instances if i.task_state is not None),
        "running_vms": len(instances),
    }


def stats(instances: Sequence[Any], failed_builds: int, extra: Mapping[str, str]) -> dict[str, str]:
    """The ``stats`` document: counters of the instances, all values as text."""
    counts: collections.Counter[str] = collections.Counter(
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


METRIC_SOURCE = "stub"


def cpu_info(kind: HostKind) -> str:
    """The profile's own, or a plain processor with the kind's number of cores."""
    if kind.cpu_info is not None:
        return json.dumps(kind.cpu_info)
    cells = len(kind.numa_cells) or 1
    topology = {"cells": cells, "sockets": 1, "cores": kind.vcpus // cells, "threads": 1}
    model = {"vendor": "Intel", "model": "Broadwell", "arch": "x86_64", "features": []}
    return json.dumps({**model, "topology": topology})


def supported_instances(kind: HostKind) -> str:
    """``[architecture, hypervisor type, vm mode]`` triples."""
    return json.dumps([list(triple) for triple in kind.supported_instances])


def metrics(kind: HostKind, now: datetime.datetime) -> str:
    """The kind's metrics as measured *now*; values are stored as the profile has them."""
    measured: list[dict[str, Any]] = [
        {"name": name, "value": value, "timestamp": now.isoformat(), "source": METRIC_SOURCE}
        for name, value in kind.metrics.items()
    ]
    return json.dumps(measured)


KIND_COLUMNS = (
    *("vcpus", "memory_mb", "local_gb", "hypervisor_type", "hypervisor_version"),
    *("cpu_allocation_ratio", "ram_allocation_ratio", "disk_allocation_ratio"),
)
"""Columns that hold what the profile says."""


class NodeReport:
    """The columns of the node of *plan*'s host, which has one node of its own name.

    *clock* gives naive UTC without fractions, *fitting* is how cells and devices are given out.
    """

    def __init__(
        self,
        plan: HostPlan,
        reserved: Reserved,
        host_ip: str,
        clock: Callable[[], datetime.datetime],
        fitting: Fitting,
    ) -> None:
        self.host = self.node = plan.name
        self.kind = plan.kind
        self.reserved = reserved
        self._host_ip = host_ip
        self._clock = clock
        self._layout = Layout(plan.kind, fitting)

    def everything(self, instances: Sequence[Any], failed_builds: int) -> dict[str, Any]:
        """All columns, for a new row or a periodic report."""
        kind = self.kind
        return {
            "host": self.host,
            "hypervisor_hostname": self.node,
            **{name: getattr(kind, name) for name in KIND_COLUMNS},
            "host_ip": self._host_ip,
            "cpu_info": cpu_info(kind),
            "supported_instances": supported_instances(kind),
            "metrics": metrics(kind, self._clock()),
            **self.usage(instances, failed_builds),
        }

    def usage(self, instances: Sequence[Any], failed_builds: int) -> dict[str, Any]:
        """The columns that follow from the *instances* on the host."""
        return {
            **usage_columns(self.kind, instances, self.reserved),
            "stats": stats(instances, failed_builds, self.kind.stats),
            **self._layout.columns(instances),
        }

    def place(self, present: Sequence[Any], newcomer: Any, limits: dict[str, Any]) -> Place:
        """Cells and devices of *newcomer*; ComputeResourcesUnavailable if it does not fit."""
        total = used(present, self.reserved)
        check_limits(total, Amounts.from_instance(newcomer), limits)
        return self._layout.place(present, newcomer, limits)
