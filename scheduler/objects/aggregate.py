"""Host aggregates as wire objects."""

from __future__ import annotations

from scheduler.objects.base import PERSISTENT, WireObject
from scheduler.objects.fields import INT, STR, UUID, DictOf, Field, ListOf
from scheduler.objects.nested import ListObject, elements
from scheduler.objects.registry import register


@register
class Aggregate(WireObject):
    """A named set of hosts with metadata; ``hosts`` are service hosts (objects page, 6)."""

    VERSION = "1.3"
    COMPUTED = ("availability_zone",)
    FIELDS = {
        "id": Field(INT),
        "uuid": Field(UUID),
        "name": Field(STR),
        "hosts": Field(ListOf(STR), nullable=True, unset=list),
        "metadata": Field(DictOf(STR), nullable=True, unset=dict),
        **PERSISTENT,
    }

    @property
    def availability_zone(self) -> str | None:
        """The zone that the metadata name, if any."""
        return (self.metadata or {}).get("availability_zone")


@register
class AggregateList(ListObject):
    """Aggregates."""

    VERSION = "1.3"
    FIELDS = elements(Aggregate)
