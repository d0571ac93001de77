"""Services as wire objects."""

from __future__ import annotations

from scheduler.objects.base import PERSISTENT, WireObject
from scheduler.objects.compute_node import ComputeNode
from scheduler.objects.fields import BOOL, DATETIME, INT, STR, UUID, Field
from scheduler.objects.nested import ListObject, ObjectOf, elements
from scheduler.objects.registry import register


@register
class Service(WireObject):
    """One process on one host, as its row says (objects page, 6)."""

    VERSION = "1.22"
    FIELDS = {
        "id": Field(INT, read_only=True),
        "uuid": Field(UUID, since=(1, 21)),
        "host": Field(STR, nullable=True),
        "binary": Field(STR, nullable=True),
        "topic": Field(STR, nullable=True),
        "report_count": Field(INT),
        "disabled": Field(BOOL),
        "disabled_reason": Field(STR, nullable=True),
        "availability_zone": Field(STR, nullable=True),
        "compute_node": Field(ObjectOf(ComputeNode)),
        "last_seen_up": Field(DATETIME, nullable=True),
        "forced_down": Field(BOOL),
        "version": Field(INT),
        **PERSISTENT,
    }


@register
class ServiceList(ListObject):
    """Services."""

    VERSION = "1.19"
    FIELDS = elements(Service)
