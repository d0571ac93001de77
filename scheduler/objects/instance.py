"""Instances and what travels with them (pages objects, 5 and 7, and conductor, 8.2 and 11)."""

import datetime
import ipaddress
from collections.abc import Mapping
from typing import Any, Self
from uuid import UUID

from scheduler.objects import registry
from scheduler.objects.base import PERSISTENT, ListObject, WireObject
from scheduler.objects.enums import PCI_NUMA_POLICY
from scheduler.objects.fields import BadValue, Field, Kind, ListOf, ObjectOf, fields, mapping
from scheduler.objects.numa import InstanceNUMATopology
from scheduler.objects.registry import within_depth
from scheduler.objects.request_parts import Flavor, SecurityGroupList

NAME_TEMPLATE = "instance-%08x"
#: An envelope that scheduling never reads, kept as received.
UNREAD = Kind(lambda value: within_depth("", mapping(value)))


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
    VERSION = "1.1"
    FIELDS = {"instance_uuid": Field(UUID), "requests": Field(list[InstancePCIRequest], unset=list)}

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

    Sizes as in a flavor.  Objects that scheduling never reads stay envelopes.
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
            UNREAD,
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
