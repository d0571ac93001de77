"""The flavor of a request or instance."""

from __future__ import annotations

from scheduler.objects.base import PERSISTENT, WireObject
from scheduler.objects.fields import BOOL, FLOAT, INT, SIZE, STR, DictOf, Field, ListOf
from scheduler.objects.registry import register


@register
class Flavor(WireObject):
    """What to build; ``swap`` and ``memory_mb`` in MB, the disks in GB (objects page, 3)."""

    VERSION = "1.2"
    FIELDS = {
        "id": Field(INT),
        "name": Field(STR, nullable=True),
        "memory_mb": Field(SIZE),
        "vcpus": Field(SIZE),
        "root_gb": Field(SIZE),
        "ephemeral_gb": Field(SIZE),
        "flavorid": Field(STR),
        "swap": Field(SIZE),
        "rxtx_factor": Field(FLOAT, nullable=True, default=1.0),
        "vcpu_weight": Field(INT, nullable=True),
        "disabled": Field(BOOL),
        "is_public": Field(BOOL),
        "extra_specs": Field(DictOf(STR), unset=dict),
        "projects": Field(ListOf(STR), unset=list),
        "description": Field(STR, nullable=True, since=(1, 2)),
        **PERSISTENT,
    }
