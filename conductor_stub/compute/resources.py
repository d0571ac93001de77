"""The arithmetic of a resource tracker: what instances use, and whether one more fits.

Usage is always the sum over the instances there are; nothing is counted up or down, so the
columns of a compute node cannot drift from its instances.  Reference page database, sections
3.1 and 5.5; page scheduling, section 6.1.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scheduler import errors

IO_TASKS = frozenset(
    (
        "resize_migrating",
        "rebuilding",
        "resize_prep",
        "image_snapshot",
        "image_backup",
        "rescuing",
        "unshelving",
    )
)


@dataclasses.dataclass(frozen=True)
class Reserved:
    """What every host keeps for itself; it is reported as used."""

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
    def of(cls, instance: Any) -> Amounts:
        """What one instance uses.  Its swap disk does not count, as with Nova's computes."""
        return cls(
            vcpus=instance.vcpus or 0,
            memory_mb=instance.memory_mb or 0,
            disk_gb=(instance.root_gb or 0) + (instance.ephemeral_gb or 0),
        )

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(
            self.vcpus + other.vcpus,
            self.memory_mb + other.memory_mb,
            self.disk_gb + other.disk_gb,
        )


def used(instances: Iterable[Any], reserved: Reserved) -> Amounts:
    """What *instances* and the host itself use together."""
    total = Amounts(0, reserved.memory_mb, reserved.disk_gb)
    for instance in instances:
        total += Amounts.of(instance)
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
