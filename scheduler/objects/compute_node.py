"""Compute nodes as wire objects (reference page objects, section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from scheduler.objects.base import PERSISTENT, WireObject
from scheduler.objects.enums import (
    ARCHITECTURES,
    HYPERVISOR_TYPES,
    VM_MODES,
    canonical_architecture,
    canonical_hypervisor_type,
    canonical_vm_mode,
)
from scheduler.objects.fields import FLOAT, INT, IP, STR, UUID, DictOf, EnumOf, Field, ListOf
from scheduler.objects.nested import ListObject, ObjectOf, elements
from scheduler.objects.pci import PciDevicePoolList
from scheduler.objects.registry import register


@register
class HVSpec(WireObject):
    """A kind of guest that a host can run; unknown values of a host are kept, not refused."""

    VERSION = "1.2"
    FIELDS = {
        "arch": Field(EnumOf(ARCHITECTURES, canonical_architecture, strict=False)),
        "hv_type": Field(EnumOf(HYPERVISOR_TYPES, canonical_hypervisor_type, strict=False)),
        "vm_mode": Field(EnumOf(VM_MODES, canonical_vm_mode, strict=False)),
    }

    @classmethod
    def from_list(cls, triple: Sequence[Any]) -> Self:
        """Read ``[arch, hypervisor type, vm mode]``; further elements are ignored."""
        return cls(arch=triple[0], hv_type=triple[1], vm_mode=triple[2])

    def to_list(self) -> list[str]:
        """The triple, as JSON columns hold it."""
        return [self.arch, self.hv_type, self.vm_mode]


@register
class ComputeNode(WireObject):
    """One hypervisor: ``host`` is its service, ``hypervisor_hostname`` its own name."""

    VERSION = "1.19"
    FIELDS = {
        "id": Field(INT, read_only=True),
        "uuid": Field(UUID, read_only=True),
        "service_id": Field(INT, nullable=True),
        "host": Field(STR, nullable=True),
        "vcpus": Field(INT),
        "memory_mb": Field(INT),
        "local_gb": Field(INT),
        "vcpus_used": Field(INT),
        "memory_mb_used": Field(INT),
        "local_gb_used": Field(INT),
        "hypervisor_type": Field(STR),
        "hypervisor_version": Field(INT),
        "hypervisor_hostname": Field(STR, nullable=True),
        "free_ram_mb": Field(INT, nullable=True),
        "free_disk_gb": Field(INT, nullable=True),
        "current_workload": Field(INT, nullable=True),
        "running_vms": Field(INT, nullable=True),
        "cpu_info": Field(STR, nullable=True),
        "disk_available_least": Field(INT, nullable=True),
        "metrics": Field(STR, nullable=True),
        "stats": Field(DictOf(STR, nullable=True), nullable=True),
        "host_ip": Field(IP, nullable=True),
        "numa_topology": Field(STR, nullable=True),
        "supported_hv_specs": Field(ListOf(ObjectOf(HVSpec)), unset=list),
        "pci_device_pools": Field(ObjectOf(PciDevicePoolList), nullable=True),
        "cpu_allocation_ratio": Field(FLOAT),
        "ram_allocation_ratio": Field(FLOAT),
        "disk_allocation_ratio": Field(FLOAT),
        "mapped": Field(INT, since=(1, 18)),
        **PERSISTENT,
    }


@register
class ComputeNodeList(ListObject):
    """Compute nodes."""

    VERSION = "1.17"
    FIELDS = elements(ComputeNode)
