"""Instances as computes, the conductor and the scheduler pass them around."""

from __future__ import annotations

from collections.abc import Callable

from scheduler.objects import versions
from scheduler.objects.base import PERSISTENT, WireObject
from scheduler.objects.fields import (
    BOOL,
    DATETIME,
    INT,
    IPV4,
    IPV6,
    STR,
    UUID,
    BadValue,
    DictOf,
    Field,
)
from scheduler.objects.flavor import Flavor
from scheduler.objects.nested import AnyObject, ListObject, ObjectOf, elements
from scheduler.objects.numa import InstanceNUMATopology
from scheduler.objects.pci import InstancePCIRequests
from scheduler.objects.registry import register
from scheduler.objects.security_group import SecurityGroupList

_Take = Callable[[str], None]
NAME_TEMPLATE = "instance-%08x"

_TEXTS = [
    "user_id",
    "project_id",
    "reservation_id",
    "vm_state",
    "task_state",
    "locked_by",
    "host",
    "node",
    "launched_on",
    "availability_zone",
    "cell_name",
    "image_ref",
    "kernel_id",
    "ramdisk_id",
    "os_type",
    "architecture",
    "vm_mode",
    "root_device_name",
    "default_ephemeral_device",
    "default_swap_device",
    "config_drive",
    "display_name",
    "display_description",
    "hostname",
    "key_name",
]
_NUMBERS = [
    "launch_index",
    "power_state",
    "progress",
    "memory_mb",
    "vcpus",
    "root_gb",
    "ephemeral_gb",
    "instance_type_id",
    "compute_id",
]
_SWITCHES = ["locked", "cleaned", "hidden", "shutdown_terminate", "disable_terminate"]
_CARRIED = [
    "pci_devices",
    "info_cache",
    "fault",
    "tags",
    "services",
    "keypairs",
    "migration_context",
    "device_metadata",
    "vcpu_model",
    "ec2_ids",
    "trusted_certs",
    "resources",
]


@register
class Instance(WireObject):
    """An instance; whoever reads one must be content with ``uuid`` (objects page, 7).

    Sizes as in a flavor.  Objects that scheduling never looks into are kept as they came.
    """

    VERSION = "2.8"
    COMPUTED = ("name",)
    FIELDS = {
        "id": Field(INT),
        "uuid": Field(UUID),
        **{name: Field(STR, nullable=True) for name in _TEXTS},
        **{name: Field(INT, nullable=True) for name in _NUMBERS},
        **{name: Field(BOOL, nullable=True, default=False) for name in _SWITCHES},
        "auto_disk_config": Field(BOOL, nullable=True),
        "user_data": Field(STR, nullable=True, sensitive=True),
        "key_data": Field(STR, nullable=True, sensitive=True),
        "access_ip_v4": Field(IPV4, nullable=True),
        "access_ip_v6": Field(IPV6, nullable=True),
        "ephemeral_key_uuid": Field(UUID, nullable=True),
        "launched_at": Field(DATETIME, nullable=True),
        "terminated_at": Field(DATETIME, nullable=True),
        "metadata": Field(DictOf(STR), unset=dict),
        "system_metadata": Field(DictOf(STR, nullable=True), unset=dict),
        "flavor": Field(ObjectOf(Flavor)),
        "old_flavor": Field(ObjectOf(Flavor), nullable=True),
        "new_flavor": Field(ObjectOf(Flavor), nullable=True),
        "numa_topology": Field(
            ObjectOf(InstanceNUMATopology, plain=InstanceNUMATopology.read_plain), nullable=True
        ),
        "pci_requests": Field(
            ObjectOf(InstancePCIRequests, plain=InstancePCIRequests.read_plain), nullable=True
        ),
        "security_groups": Field(ObjectOf(SecurityGroupList)),
        **{name: Field(AnyObject(), nullable=True) for name in _CARRIED},
        **PERSISTENT,
    }

    @property
    def name(self) -> str | None:
        """The name that hypervisors know the instance by, once it has an ``id``."""
        return None if self.id is None else NAME_TEMPLATE % self.id

    def _take_version(self, version: str) -> None:
        _take_older_major(self, version, super()._take_version)


@register
class InstanceList(ListObject):
    """Instances."""

    VERSION = "2.6"
    FIELDS = elements(Instance)

    def _take_version(self, version: str) -> None:
        _take_older_major(self, version, super()._take_version)


def _take_older_major(obj: Instance | InstanceList, version: str, take: _Take) -> None:
    """Up to Liberty these classes were 1.x; what 2.0 changed was to drop fields."""
    try:
        is_older = versions.parse(version)[0] == 1
    except ValueError as error:
        raise BadValue(str(error)) from error
    if is_older:
        obj.__dict__["_version"] = version
        return
    take(version)
