"""The record of a move, which computes of today are given (reference page conductor, 8.2)."""

from __future__ import annotations

from scheduler.objects.base import PERSISTENT, WireObject
from scheduler.objects.fields import BOOL, INT, STR, UUID, Field
from scheduler.objects.registry import register

_TEXTS = [
    "source_compute",
    "dest_compute",
    "source_node",
    "dest_node",
    "dest_host",
    "status",
    "migration_type",
    "user_id",
    "project_id",
]
_NUMBERS = [
    "old_instance_type_id",
    "new_instance_type_id",
    "memory_total",
    "memory_processed",
    "memory_remaining",
    "disk_total",
    "disk_processed",
    "disk_remaining",
    "dest_compute_id",
]


@register
class Migration(WireObject):
    """One move of one instance; only carried along."""

    VERSION = "1.8"
    FIELDS = {
        "id": Field(INT),
        "uuid": Field(UUID),
        "instance_uuid": Field(UUID, nullable=True),
        **{name: Field(STR, nullable=True) for name in _TEXTS},
        **{name: Field(INT, nullable=True) for name in _NUMBERS},
        "hidden": Field(BOOL, default=False),
        "cross_cell_move": Field(BOOL, default=False),
        **PERSISTENT,
    }
