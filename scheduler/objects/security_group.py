"""Security groups: only carried along."""

from __future__ import annotations

from scheduler.objects.base import PERSISTENT, WireObject
from scheduler.objects.fields import INT, STR, UUID, Field
from scheduler.objects.nested import ListObject, elements
from scheduler.objects.registry import register


@register
class SecurityGroup(WireObject):
    """A security group; in a request only ``uuid`` or ``name`` is set."""

    VERSION = "1.2"
    FIELDS = {
        "id": Field(INT),
        "name": Field(STR),
        "description": Field(STR),
        "user_id": Field(STR),
        "project_id": Field(STR),
        "uuid": Field(UUID, since=(1, 2)),
        **PERSISTENT,
    }


@register
class SecurityGroupList(ListObject):
    """Security groups."""

    VERSION = "1.1"
    FIELDS = elements(SecurityGroup)
