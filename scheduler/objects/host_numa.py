"""The NUMA topology of a host (reference pages objects, section 5, and numa_pci, section 2)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Self

from scheduler import errors
from scheduler.objects import json_text, registry
from scheduler.objects.base import WireObject, described, from_primitive
from scheduler.objects.cpu_spec import parse_cpu_spec
from scheduler.objects.fields import INT, Field, ListOf, SetOf
from scheduler.objects.limits import NetworkMetadata
from scheduler.objects.nested import ObjectOf
from scheduler.objects.registry import register


@register
class NUMAPagesTopology(WireObject):
    """Memory pages of one size (KiB) in a cell."""

    VERSION = "1.1"
    FIELDS = {
        "size_kb": Field(INT),
        "total": Field(INT),
        "used": Field(INT, default=0),
        "reserved": Field(INT, default=0, since=(1, 1)),
    }

    @property
    def free(self) -> int:
        """Pages that nobody uses or reserved."""
        return self.total - self.used - self.reserved

    @property
    def free_kb(self) -> int:
        """The same in KiB."""
        return self.free * self.size_kb


@register
class NUMACell(WireObject):
    """One NUMA cell of a host; ``memory`` and ``memory_usage`` in MB.

    ``pcpuset`` is None for hosts that still offer all their CPUs in ``cpuset``.
    """

    VERSION = "1.5"
    FIELDS = {
        "id": Field(INT, read_only=True),
        "cpuset": Field(SetOf(INT), unset=set),
        "pcpuset": Field(SetOf(INT), since=(1, 4)),
        "memory": Field(INT),
        "cpu_usage": Field(INT, default=0),
        "memory_usage": Field(INT, default=0),
        "pinned_cpus": Field(SetOf(INT), unset=set),
        "siblings": Field(ListOf(SetOf(INT)), unset=list),
        "mempages": Field(ListOf(ObjectOf(NUMAPagesTopology)), unset=list),
        "network_metadata": Field(ObjectOf(NetworkMetadata), since=(1, 3)),
        "socket": Field(INT, nullable=True, since=(1, 5)),
    }

    @property
    def free_cpus(self) -> set[int]:
        """Shared CPUs that no guest is pinned to."""
        return self.cpuset - self.pinned_cpus

    @property
    def free_pcpus(self) -> set[int]:
        """Dedicated CPUs that no guest is pinned to; those of ``cpuset`` on older hosts."""
        return (self.cpuset if self.pcpuset is None else self.pcpuset) - self.pinned_cpus

    @property
    def avail_memory(self) -> int:
        """Memory in MB that no guest uses."""
        return self.memory - self.memory_usage

    @classmethod
    def from_legacy(cls, cell: Mapping[str, Any]) -> Self:
        """Read a cell of the text form from before envelopes; ``id`` is mandatory.

        Raises InvalidRequest.
        """
        memory = _mapping(_mapping(cell).get("mem") or {})
        return cls(
            id=cell.get("id"),
            cpuset=_cpus(cell.get("cpus")),
            memory=memory.get("total", 0),
            memory_usage=memory.get("used", 0),
            cpu_usage=cell.get("cpu_usage", 0),
            pinned_cpus=set(),
            siblings=[],
            mempages=[],
        )


@register
class NUMATopology(WireObject):
    """The NUMA cells of a host; false when there are none."""

    VERSION = "1.2"
    FIELDS = {"cells": Field(ListOf(ObjectOf(NUMACell)), unset=list)}

    def __len__(self) -> int:
        return len(self.cells)

    @classmethod
    def from_text(cls, text: str | None) -> Self | None:
        """Read ``compute_nodes.numa_topology``: the JSON text of an envelope or of the old form.

        Null gives None.  Raises InvalidRequest when the text is neither.
        """
        if text is None:
            return None
        try:
            value = json_text.read(text)
        except ValueError as exc:
            raise errors.InvalidRequest(field=cls.__name__, reason=f"not JSON: {exc}") from exc
        if not isinstance(value, dict):
            raise errors.InvalidRequest(field=cls.__name__, reason=f"found {described(value)}")
        if registry.NAME_KEY in value:
            return from_primitive(value)
        cells = value.get("cells") or []
        if not isinstance(cells, list):
            raise errors.InvalidRequest(field="NUMATopology.cells", reason="not a list")
        return cls(cells=[NUMACell.from_legacy(cell) for cell in cells])

    def to_text(self) -> str:
        """The JSON text of the envelope, as the column holds it."""
        return json.dumps(self.obj_to_primitive())


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise errors.InvalidRequest(field="NUMACell", reason=f"found {described(value)}")
    return value


def _cpus(text: Any) -> set[int]:
    try:
        return parse_cpu_spec(str(text or ""))
    except ValueError as exc:
        raise errors.InvalidRequest(field="NUMACell.cpus", reason=str(exc)) from exc
