"""Servers as the API asks for them, before any cell knows them (reference page conductor, 11)."""

from __future__ import annotations

from scheduler.objects.base import WireObject
from scheduler.objects.block_device import BlockDeviceMappingList
from scheduler.objects.fields import DATETIME, INT, STR, UUID, Field
from scheduler.objects.instance import Instance
from scheduler.objects.nested import ListObject, ObjectOf, elements
from scheduler.objects.registry import register


@register
class Tag(WireObject):
    """A word that a user has put on a server."""

    VERSION = "1.1"
    FIELDS = {"resource_id": Field(STR), "tag": Field(STR)}


@register
class TagList(ListObject):
    """All tags of a server."""

    VERSION = "1.1"
    FIELDS = elements(Tag)


@register
class BuildRequest(WireObject):
    """One server that is asked for, with its disks and tags."""

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
        "created_at": Field(DATETIME, nullable=True),
        "updated_at": Field(DATETIME, nullable=True),
    }
