"""Wire classes that no scheduler reads (pages objects, 5, and conductor, 8.2 and 11)."""

import datetime
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from scheduler import errors
from scheduler.objects import Instance, ListObject, NetworkRequest, NetworkRequestList, WireObject
from scheduler.objects.base import PERSISTENT
from scheduler.objects.fields import Field, fields


class BlockDeviceMapping(WireObject):
    """One disk; ``connection_info`` holds secrets and is masked."""

    VERSION = "1.21"
    FIELDS = {
        "id": Field(int),
        "uuid": Field(UUID, since=(1, 18)),
        "instance_uuid": Field(UUID),
        "instance": Field(Instance, nullable=True),
        **fields(
            str,
            "source_type destination_type guest_format device_type disk_bus",
            nullable=True,
        ),
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
        "encryption_format": Field(str, nullable=True),
        "encryption_options": Field(str, nullable=True),
        **PERSISTENT,
    }


class BlockDeviceMappingList(ListObject, of=BlockDeviceMapping, version="1.18"):
    """All disks of an instance."""


class TagList(WireObject):
    """All tags of a server, kept as received."""

    VERSION = "1.1"
    FIELDS = {}


class Migration(WireObject):
    """One move of one instance, as today's computes are given it, kept as received."""

    VERSION = "1.8"
    FIELDS = {}


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
        "tags": Field(TagList, since=(1, 3)),
        **fields(datetime.datetime, "created_at updated_at", nullable=True),
    }


#: The elements of the tuples that stood for a network before it was an object: 4 in Newton.
NETWORK_TUPLE = ("network_id", "address", "port_id", "pci_request_id", "arq_uuid", "device_profile")
TUPLE_LENGTHS = (2, 4, 6)


def networks_of(tuples: Iterable[Sequence[Any]]) -> NetworkRequestList:
    """Read the list of tuples that older callers send; InvalidRequest for other lengths."""
    found = NetworkRequestList()
    for each in tuples:
        if len(each) not in TUPLE_LENGTHS:
            reason = f"a tuple of {len(each)} elements"
            raise errors.InvalidRequest(field="NetworkRequest", reason=reason)
        found.objects.append(NetworkRequest(**dict(zip(NETWORK_TUPLE, each, strict=False))))
    return found


def network_tuples(networks: NetworkRequestList | None) -> list[tuple[str | None, ...]] | None:
    """The list of Newton's tuples."""
    if networks is None:
        return None
    values = [[getattr(each, name) for name in NETWORK_TUPLE[:4]] for each in networks]
    return [tuple(None if part is None else str(part) for part in each) for each in values]
