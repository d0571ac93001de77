"""Instances and what travels with them (pages objects, 5 and 7, and conductor, 8.2 and 11)."""

import datetime
import ipaddress
from collections.abc import Mapping
from typing import Any, Self
from uuid import UUID

from scheduler.objects import registry
from scheduler.objects.base import PERSISTENT, ListObject, WireObject
from scheduler.objects.enums import DEVICE_TYPE, ENCRYPTION_FORMATS, PCI_NUMA_POLICY, carried
from scheduler.objects.fields import BadValue, Field, ListOf, ObjectOf, fields
from scheduler.objects.numa import InstanceNUMATopology
from scheduler.objects.registry import AnyObject
from scheduler.objects.request_parts import Flavor, SecurityGroupList

NAME_TEMPLATE = "instance-%08x"


class InstancePCIRequest(WireObject):
    """A number of devices that match one of several specs; no ``numa_policy`` means legacy."""

    VERSION = "1.4"
    FIELDS = {
        "count": Field(int),
        "spec": Field(list[dict[str, str | None]], unset=list),
        "alias_name": Field(str, nullable=True),
        "is_new": Field(bool, default=False),
        "request_id": Field(UUID, nullable=True),
        "requester_id": Field(str, nullable=True, since=(1, 3)),
        "numa_policy": Field(PCI_NUMA_POLICY, nullable=True, since=(1, 2)),
    }


_PLAIN_REQUESTS = Field(ListOf(ObjectOf(InstancePCIRequest, plain=True)))


class InstancePCIRequests(WireObject):
    """All PCI requests of one instance."""

    VERSION = "1.1"
    FIELDS = {
        "instance_uuid": Field(UUID),
        "requests": Field(list[InstancePCIRequest], unset=list),
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
        "id": Field(int),
        "uuid": Field(UUID),
        **fields(
            str,
            "user_id project_id reservation_id vm_state task_state locked_by host node launched_on"
            " availability_zone cell_name image_ref kernel_id ramdisk_id os_type architecture"
            " vm_mode root_device_name default_ephemeral_device default_swap_device config_drive"
            " display_name display_description hostname key_name",
            nullable=True,
        ),
        **fields(
            int,
            "launch_index power_state progress memory_mb vcpus root_gb ephemeral_gb"
            " instance_type_id compute_id",
            nullable=True,
        ),
        **fields(
            bool,
            "locked cleaned hidden shutdown_terminate disable_terminate",
            nullable=True,
            default=False,
        ),
        "auto_disk_config": Field(bool, nullable=True),
        **fields(str, "user_data key_data", nullable=True, sensitive=True),
        "access_ip_v4": Field(ipaddress.IPv4Address, nullable=True),
        "access_ip_v6": Field(ipaddress.IPv6Address, nullable=True),
        "ephemeral_key_uuid": Field(UUID, nullable=True),
        **fields(datetime.datetime, "launched_at terminated_at", nullable=True),
        "metadata": Field(dict[str, str], unset=dict),
        "system_metadata": Field(dict[str, str | None], unset=dict),
        "flavor": Field(Flavor),
        **fields(Flavor, "old_flavor new_flavor", nullable=True),
        "numa_topology": Field(ObjectOf(InstanceNUMATopology, plain=True), nullable=True),
        "pci_requests": Field(ObjectOf(InstancePCIRequests, plain=True), nullable=True),
        "security_groups": Field(SecurityGroupList),
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
        "id": Field(int),
        "uuid": Field(UUID, since=(1, 18)),
        "instance_uuid": Field(UUID),
        "instance": Field(Instance, nullable=True),
        "source_type": Field(carried("blank image snapshot volume"), nullable=True),
        "destination_type": Field(carried("local volume"), nullable=True),
        "guest_format": Field(str, nullable=True),
        "device_type": Field(DEVICE_TYPE, nullable=True),
        "disk_bus": Field(str, nullable=True),
        "boot_index": Field(int, nullable=True),
        "device_name": Field(str, nullable=True),
        "delete_on_termination": Field(bool, default=False),
        **fields(str, "snapshot_id volume_id", nullable=True),
        "volume_size": Field(int, nullable=True),
        "image_id": Field(str, nullable=True),
        "no_device": Field(bool, default=False),
        "connection_info": Field(str, nullable=True, sensitive=True),
        "tag": Field(str, nullable=True),
        "attachment_id": Field(UUID, nullable=True),
        "volume_type": Field(str, nullable=True),
        "encrypted": Field(bool, default=False),
        "encryption_secret_uuid": Field(UUID, nullable=True),
        "encryption_format": Field(carried(ENCRYPTION_FORMATS), nullable=True),
        "encryption_options": Field(str, nullable=True),
        **PERSISTENT,
    }


class BlockDeviceMappingList(ListObject, of=BlockDeviceMapping, version="1.18"):
    """All disks of an instance."""


class Tag(WireObject):
    """A word that a user has put on a server."""

    VERSION = "1.1"
    FIELDS = fields(str, "resource_id tag")


class TagList(ListObject, of=Tag, version="1.1"):
    """All tags of a server."""


class BuildRequest(WireObject):
    """One requested server, before any cell knows it, with its disks and tags."""

    VERSION = "1.3"
    FIELDS = {
        "id": Field(int),
        "instance_uuid": Field(UUID),
        "project_id": Field(str),
        "instance": Field(Instance),
        "block_device_mappings": Field(
            BlockDeviceMappingList, unset=BlockDeviceMappingList, since=(1, 1)
        ),
        "tags": Field(TagList, unset=TagList, since=(1, 3)),
        **fields(datetime.datetime, "created_at updated_at", nullable=True),
    }


class Migration(WireObject):
    """One move of one instance, as today's computes are given it."""

    VERSION = "1.8"
    FIELDS = {
        "id": Field(int),
        "uuid": Field(UUID),
        "instance_uuid": Field(UUID, nullable=True),
        **fields(
            str,
            "source_compute dest_compute source_node dest_node dest_host status migration_type"
            " user_id project_id",
            nullable=True,
        ),
        **fields(
            int,
            "old_instance_type_id new_instance_type_id memory_total memory_processed"
            " memory_remaining disk_total disk_processed disk_remaining dest_compute_id",
            nullable=True,
        ),
        **fields(bool, "hidden cross_cell_move", default=False),
        **PERSISTENT,
    }
