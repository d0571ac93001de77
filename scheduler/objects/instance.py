"""Instances and what travels with them (pages objects, 5 and 7, and conductor, 8.2 and 11)."""

from collections.abc import Mapping
from typing import Any, Self

from scheduler.objects import registry
from scheduler.objects.base import PERSISTENT, ListObject, WireObject
from scheduler.objects.enums import DEVICE_TYPE, ENCRYPTION_FORMATS, PCI_NUMA_POLICY, carried
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
    ListOf,
    ObjectOf,
    fields,
)
from scheduler.objects.numa import InstanceNUMATopology
from scheduler.objects.registry import AnyObject
from scheduler.objects.request_parts import Flavor, SecurityGroupList

NAME_TEMPLATE = "instance-%08x"


class InstancePCIRequest(WireObject):
    """A number of devices that match one of several specs; no ``numa_policy`` means legacy."""

    VERSION = "1.4"
    FIELDS = {
        "count": Field(INT),
        "spec": Field(ListOf(DictOf(STR, nullable=True)), unset=list),
        "alias_name": Field(STR, nullable=True),
        "is_new": Field(BOOL, default=False),
        "request_id": Field(UUID, nullable=True),
        "requester_id": Field(STR, nullable=True, since=(1, 3)),
        "numa_policy": Field(PCI_NUMA_POLICY, nullable=True, since=(1, 2)),
    }


_PLAIN_REQUESTS = Field(ListOf(ObjectOf(InstancePCIRequest, plain=True)))


class InstancePCIRequests(WireObject):
    """All PCI requests of one instance."""

    VERSION = "1.1"
    FIELDS = {
        "instance_uuid": Field(UUID),
        "requests": Field(ListOf(ObjectOf(InstancePCIRequest)), unset=list),
    }

    @classmethod
    def read_dict(cls, value: Any) -> Self:
        """Read a plain dict, or the list of request dicts that database rows and hints hold.

        Raises BadValue that names the request and the field at fault.
        """
        if not isinstance(value, Mapping):
            value = {"requests": value}
        elif registry.NAME_KEY in value:
            return cls.read(dict(value))
        result, uuid = cls(), value.get("instance_uuid")
        if uuid is not None:
            result.instance_uuid = uuid
        requests = value.get("requests") or []
        result.__dict__["requests"] = _PLAIN_REQUESTS.accept("requests", requests)
        return result


class _SinceMajorOne(WireObject):
    """Base of classes that take 1.x, their versions up to Liberty; 2.0 only dropped fields."""

    def _take_version(self, version: str) -> None:
        try:
            is_older = registry.parse(version)[0] == 1
        except ValueError as error:
            raise BadValue(str(error)) from error
        if is_older:
            self.__dict__["_version"] = version
        else:
            super()._take_version(version)


class Instance(_SinceMajorOne):
    """An instance; senders may set only ``uuid``.

    Sizes as in a flavor.  Objects that scheduling never reads are kept as received.
    """

    VERSION = "2.8"
    COMPUTED = ("name",)
    FIELDS = {
        "id": Field(INT),
        "uuid": Field(UUID),
        **fields(
            STR,
            "user_id project_id reservation_id vm_state task_state locked_by host node launched_on"
            " availability_zone cell_name image_ref kernel_id ramdisk_id os_type architecture"
            " vm_mode root_device_name default_ephemeral_device default_swap_device config_drive"
            " display_name display_description hostname key_name",
            nullable=True,
        ),
        **fields(
            INT,
            "launch_index power_state progress memory_mb vcpus root_gb ephemeral_gb"
            " instance_type_id compute_id",
            nullable=True,
        ),
        **fields(
            BOOL,
            "locked cleaned hidden shutdown_terminate disable_terminate",
            nullable=True,
            default=False,
        ),
        "auto_disk_config": Field(BOOL, nullable=True),
        **fields(STR, "user_data key_data", nullable=True, sensitive=True),
        "access_ip_v4": Field(IPV4, nullable=True),
        "access_ip_v6": Field(IPV6, nullable=True),
        "ephemeral_key_uuid": Field(UUID, nullable=True),
        **fields(DATETIME, "launched_at terminated_at", nullable=True),
        "metadata": Field(DictOf(STR), unset=dict),
        "system_metadata": Field(DictOf(STR, nullable=True), unset=dict),
        "flavor": Field(ObjectOf(Flavor)),
        **fields(ObjectOf(Flavor), "old_flavor new_flavor", nullable=True),
        "numa_topology": Field(ObjectOf(InstanceNUMATopology, plain=True), nullable=True),
        "pci_requests": Field(ObjectOf(InstancePCIRequests, plain=True), nullable=True),
        "security_groups": Field(ObjectOf(SecurityGroupList)),
        **fields(
            AnyObject(),
            "pci_devices info_cache fault tags services keypairs migration_context device_metadata"
            " vcpu_model ec2_ids trusted_certs resources",
            nullable=True,
        ),
        **PERSISTENT,
    }

    @property
    def name(self) -> str | None:
        """The instance's name for hypervisors, once it has an ``id``."""
        return None if self.id is None else NAME_TEMPLATE % self.id


class InstanceList(_SinceMajorOne, ListObject, of=Instance, version="2.6"):
    """Instances."""


class BlockDeviceMapping(WireObject):
    """One disk; ``connection_info`` holds secrets and is masked."""

    VERSION = "1.21"
    FIELDS = {
        "id": Field(INT),
        "uuid": Field(UUID, since=(1, 18)),
        "instance_uuid": Field(UUID),
        "instance": Field(ObjectOf(Instance), nullable=True),
        "source_type": Field(carried("blank image snapshot volume"), nullable=True),
        "destination_type": Field(carried("local volume"), nullable=True),
        "guest_format": Field(STR, nullable=True),
        "device_type": Field(DEVICE_TYPE, nullable=True),
        "disk_bus": Field(STR, nullable=True),
        "boot_index": Field(INT, nullable=True),
        "device_name": Field(STR, nullable=True),
        "delete_on_termination": Field(BOOL, default=False),
        **fields(STR, "snapshot_id volume_id", nullable=True),
        "volume_size": Field(INT, nullable=True),
        "image_id": Field(STR, nullable=True),
        "no_device": Field(BOOL, default=False),
        "connection_info": Field(STR, nullable=True, sensitive=True),
        "tag": Field(STR, nullable=True),
        "attachment_id": Field(UUID, nullable=True),
        "volume_type": Field(STR, nullable=True),
        "encrypted": Field(BOOL, default=False),
        "encryption_secret_uuid": Field(UUID, nullable=True),
        "encryption_format": Field(carried(ENCRYPTION_FORMATS), nullable=True),
        "encryption_options": Field(STR, nullable=True),
        **PERSISTENT,
    }


class BlockDeviceMappingList(ListObject, of=BlockDeviceMapping, version="1.18"):
    """All disks of an instance."""


class Tag(WireObject):
    """A word that a user has put on a server."""

    VERSION = "1.1"
    FIELDS = fields(STR, "resource_id tag")


class TagList(ListObject, of=Tag, version="1.1"):
    """All tags of a server."""


class BuildRequest(WireObject):
    """One requested server, before any cell knows it, with its disks and tags."""

    VERSION = "1.3"
    FIELDS = {
        "id": Field(INT),
        "instance_uuid": Field(UUID),
        "project_id": Field(STR),
        "instance": Field(ObjectOf(Instance)),
        "block_device_mappings": Field(
            ObjectOf(BlockDeviceMappingList), unset=BlockDeviceMappingList, since=(1, 1)
        ),
        "tags": Field(ObjectOf(TagList), unset=TagList, since=(1, 3)),
        **fields(DATETIME, "created_at updated_at", nullable=True),
    }


class Migration(WireObject):
    """One move of one instance, as today's computes are given it."""

    VERSION = "1.8"
    FIELDS = {
        "id": Field(INT),
        "uuid": Field(UUID),
        "instance_uuid": Field(UUID, nullable=True),
        **fields(
            STR,
            "source_compute dest_compute source_node dest_node dest_host status migration_type"
            " user_id project_id",
            nullable=True,
        ),
        **fields(
            INT,
            "old_instance_type_id new_instance_type_id memory_total memory_processed"
            " memory_remaining disk_total disk_processed disk_remaining dest_compute_id",
            nullable=True,
        ),
        **fields(BOOL, "hidden cross_cell_move", default=False),
        **PERSISTENT,
    }
