"""Limits that depend on networks and NUMA cells."""

from __future__ import annotations

from typing import Any, Self

from scheduler.objects.base import WireObject
from scheduler.objects.cpu_spec import parse_cpu_spec
from scheduler.objects.fields import BOOL, FLOAT, STR, BadValue, Field, SetOf
from scheduler.objects.nested import ObjectOf
from scheduler.objects.registry import register


@register
class NetworkMetadata(WireObject):
    """The physical networks of a request or a NUMA cell, and whether tunnels are used."""

    VERSION = "1.0"
    LISTS_CHANGES = True
    FIELDS = {"physnets": Field(SetOf(STR), unset=set), "tunneled": Field(BOOL, unset=False)}


@register
class NUMATopologyLimits(WireObject):
    """How far a NUMA cell may be overcommitted."""

    VERSION = "1.1"
    LISTS_CHANGES = True
    FIELDS = {
        "cpu_allocation_ratio": Field(FLOAT),
        "ram_allocation_ratio": Field(FLOAT),
        "network_metadata": Field(ObjectOf(NetworkMetadata), since=(1, 1)),
    }

    @classmethod
    def read_plain(cls, value: Any) -> Self:
        """Read the dict that old compute hosts use, of which only the first cell counts.

        Raises BadValue when it has no such cell.
        """
        try:
            cell = value["cells"][0]
            cpus = parse_cpu_spec(str(cell["cpus"]))
            memory = cell["mem"]
            return cls(
                cpu_allocation_ratio=cell["cpu_limit"] / len(cpus),
                ram_allocation_ratio=memory["limit"] / memory["total"],
            )
        except (LookupError, TypeError, ValueError, ZeroDivisionError) as exc:
            raise BadValue(f"neither limits nor their old dict form: {exc!r}") from exc
