"""Block devices of an instance: only carried along."""

from __future__ import annotations

from scheduler.objects.base import PERSISTENT, WireObject
from scheduler.objects.enums import DEVICE_TYPES, ENCRYPTION_FORMATS, carried
from scheduler.objects.fields import BOOL, INT, STR, UUID, Field
from scheduler.objects.instance import Instance
from scheduler.objects.nested import ListObject, ObjectOf, elements
from scheduler.objects.registry import register


@register
class BlockDeviceMapping(WireObject):
    """One disk; ``connection_info`` holds secrets and is masked (objects page, 7)."""

    VERSION = "1.21"
    FIELDS = {
        "id": Field(INT),
        "uuid": Field(UUID, since=(1, 18)),
        "instance_uuid": Field(UUID),
        "instance": Field(ObjectOf(Instance), nullable=True),
        "source_type": Field(carried("blank", "image", "snapshot", "volume"), nullable=True),
        "destination_type": Field(carried("local", "volume"), nullable=True),
        "guest_format": Field(STR, nullable=True),
        "device_type": Field(carried(*DEVICE_TYPES), nullable=True),
        "disk_bus": Field(STR, nullable=True),
        "boot_index": Field(INT, nullable=True),
        "device_name": Field(STR, nullable=True),
        "delete_on_termination": Field(BOOL, default=False),
        "snapshot_id": Field(STR, nullable=True),
        "volume_id": Field(STR, nullable=True),
        "volume_size": Field(INT, nullable=True),
        "image_id": Field(STR, nullable=True),
        "no_device": Field(BOOL, default=False),
        "connection_info": Field(STR, nullable=True, sensitive=True),
        "tag": Field(STR, nullable=True),
        "attachment_id": Field(UUID, nullable=True),
        "volume_type": Field(STR, nullable=True),
        "encrypted": Field(BOOL, default=False),
        "encryption_secret_uuid": Field(UUID, nullable=True),
        "encryption_format": Field(carried(*ENCRYPTION_FORMATS), nullable=True),
        "encryption_options": Field(STR, nullable=True),
        **PERSISTENT,
    }

    @property
    def is_boot_volume(self) -> bool:
        """Whether the instance boots from this volume."""
        return self.boot_index == 0 and self.destination_type == "volume"


@register
class BlockDeviceMappingList(ListObject):
    """All disks of an instance."""

    VERSION = "1.18"
    FIELDS = elements(BlockDeviceMapping)
