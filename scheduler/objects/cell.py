"""The cell that a host belongs to."""

from __future__ import annotations

from scheduler.objects.base import WireObject
from scheduler.objects.fields import BOOL, DATETIME, INT, STR, UUID, Field
from scheduler.objects.registry import register


@register
class CellMapping(WireObject):
    """A cell; its URLs hold credentials and are masked wherever the object is shown."""

    VERSION = "1.1"
    FIELDS = {
        "id": Field(INT, read_only=True),
        "uuid": Field(UUID),
        "name": Field(STR, nullable=True),
        "transport_url": Field(STR, sensitive=True),
        "database_connection": Field(STR, sensitive=True),
        "disabled": Field(BOOL, default=False, since=(1, 1)),
        "created_at": Field(DATETIME, nullable=True),
        "updated_at": Field(DATETIME, nullable=True),
    }
