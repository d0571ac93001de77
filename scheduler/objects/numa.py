"""NUMA topologies of guests and hosts, and their limits (pages objects, 5, and numa_pci, 2)."""

import json
from collections.abc import Mapping
from typing import Any, Self
from uuid import UUID

from scheduler import errors
from scheduler.objects import registry
from scheduler.objects.base import WireObject, from_primitive
from scheduler.objects.enums import CPU_POLICY, CPU_THREAD_POLICY, EMULATOR_THREADS_POLICY
from scheduler.objects.fields import BadValue, Field, ListOf, ObjectOf, described, fields, mapping
from scheduler.objects.registry import Version, read_json

MAX_CPU = 65535


class VirtCPUTopology(WireObject):
    """Sockets, cores and threads of a guest."""

    VERSION = "1.0"
    FIELDS = fields(int, "sockets cores threads", nullable=True, default=1)


class InstanceNUMACell(WireObject):
    """One NUMA cell of a guest; ``memory`` in MB, ``pagesize`` in KiB or -1, -2, -3.

    ``cpuset`` are floating CPUs, ``pcpuset`` those with a host CPU of their own.  Data from
    senders that knew only ``cpuset`` is brought to this form.
    """

    VERSION = "1.6"
    FILL_DEFAULTS = True
    FIELDS = {
        "id": Field(int),
        "cpuset": Field(set[int], unset=set),
        "pcpuset": Field(set[int], unset=set, since=(1, 5)),
        "cpuset_reserved": Field(set[int], nullable=True, default=None, since=(1, 4)),
        "memory": Field(int),
        "pagesize": Field(int, nullable=True, default=None),
        "cpu_topology": Field(VirtCPUTopology, nullable=True),
        "cpu_pinning_raw": Field(dict[str, int], nullable=True, default=None),
        "cpu_policy": Field(CPU_POLICY, nullable=True, default=None),
        "cpu_thread_policy": Field(CPU_THREAD_POLICY, nullable=True, default=None),
    }

    cpuset: set[int]
    pcpuset: set[int]

    @property
    def total_cpus(self) -> set[int]:
        return self.cpuset | self.pcpuset

    @property
    def cpu_pinning(self) -> dict[int, int] | None:
        """Guest CPU to host CPU, None before the guest was fitted to a host; InvalidRequest."""
        raw = self.cpu_pinning_raw
        with errors.as_invalid("InstanceNUMACell.cpu_pinning_raw", ValueError):
            return None if raw is None else {int(guest): host for guest, host in raw.items()}

    @cpu_pinning.setter
    def cpu_pinning(self, pinning: Mapping[int, int] | None) -> None:
        self.cpu_pinning_raw = (
            None if pinning is None else {str(guest): host for guest, host in pinning.items()}
        )

    def _upgrade(self, version: Version) -> None:
        if version < (1, 5):
            self.split_cpuset()

    def split_cpuset(self) -> None:
        """Move the CPUs of a cell from before ``pcpuset`` to the field they belong to."""
        dedicated = self.cpu_policy == "dedicated"
        self.pcpuset = self.cpuset if dedicated else set()
        if dedicated:
            self.cpuset = set()

    def _downgrade(self, data: dict[str, Any], version: Version) -> None:
        if version < (1, 5):
            data["cpuset"] = sorted(self.total_cpus)

    @classmethod
    def read_dict(cls, value: Any) -> Self:
        """Read a cell of a plain dict or of the oldest text; raises BadValue."""
        mapping(value)
        values = {name: value[name] for name in cls.FIELDS if name in value}
        if "cpus" in value or "mem" in value:
            values["cpuset"] = parse_cpu_spec(str(value.get("cpus") or ""))
            values["memory"] = mapping(value.get("mem") or {}, "mem").get("total", 0)
        for name in ("id", "cpuset", "memory"):
            values.setdefault(name, None)
        cell = object.__new__(cls)
        cell.__dict__.update({n: cls.FIELDS[n].accept(n, v) for n, v in values.items()})
        cell.set_defaults()
        if "pcpuset" not in values:
            cell.split_cpuset()
        return cell


_PLAIN_CELLS = Field(ListOf(ObjectOf(InstanceNUMACell, plain=True)))


class InstanceNUMATopology(WireObject):
    """The NUMA cells of a guest; false when there are none."""

    VERSION = "1.3"
    FIELDS = {
        "id": Field(int),
        "instance_uuid": Field(UUID),
        "cells": Field(list[InstanceNUMACell], unset=list),
        "emulator_threads_policy": Field(EMULATOR_THREADS_POLICY, nullable=True, since=(1, 3)),
    }

    def __len__(self) -> int:
        return len(self.cells)

    @classmethod
    def read_dict(cls, value: Any) -> Self:
        """Read an envelope, a plain dict as old requests hold it, or the JSON text of either.

        Raises BadValue for anything else (sections 4.1 and 4.2).
        """
        if isinstance(value, str):
            try:
                value = read_json(value)
            except ValueError as exc:
                raise BadValue(f"the text is not JSON: {exc}") from exc
        mapping(value)
        if registry.NAME_KEY in value:
            if value[registry.NAME_KEY] != cls.__name__:
                raise BadValue(f"a {cls.__name__} object is needed, not {described(value)}")
            return cls.read(dict(value))
        cells = value.get("cells")
        if not isinstance(cells, list) or not cells:
            raise BadValue("a topology without cells")
        topology = cls()
        for name in ("instance_uuid", "emulator_threads_policy"):
            if value.get(name) is not None:
                topology.__dict__[name] = cls.FIELDS[name].accept(name, value[name])
        topology.__dict__["cells"] = _PLAIN_CELLS.accept("cells", cells)
        return topology


class NetworkMetadata(WireObject):
    """The physical networks of a request or a NUMA cell, and whether tunnels are used."""

    VERSION = "1.0"
    LISTS_CHANGES = True
    FIELDS = {"physnets": Field(set[str], unset=set), "tunneled": Field(bool, unset=False)}


class NUMATopologyLimits(WireObject):
    """The overcommit ratios of a host's NUMA cells."""

    VERSION = "1.1"
    LISTS_CHANGES = True
    FIELDS = {
        **fields(float, "cpu_allocation_ratio ram_allocation_ratio"),
        "network_metadata": Field(NetworkMetadata, since=(1, 1)),
    }

    @classmethod
    def read_dict(cls, value: Any) -> Self:
        """Read the dict of old compute hosts, of which only the first cell counts.

        Raises BadValue when it has no such cell.
        """
        try:
            cell = value["cells"][0]
            memory = cell["mem"]
            return cls(
                cpu_allocation_ratio=cell["cpu_limit"] / len(parse_cpu_spec(str(cell["cpus"]))),
                ram_allocation_ratio=memory["limit"] / memory["total"],
            )
        except (LookupError, TypeError, ValueError, ZeroDivisionError) as exc:
            raise BadValue(f"neither limits nor their old dict form: {exc!r}") from exc


class NUMAPagesTopology(WireObject):
    """Memory pages of one size (KiB) in a cell."""

    VERSION = "1.1"
    FIELDS = {
        **fields(int, "size_kb total"),
        "used": Field(int, default=0),
        "reserved": Field(int, default=0, since=(1, 1)),
    }


class NUMACell(WireObject):
    """One NUMA cell of a host; ``memory`` and ``memory_usage`` in MB.

    ``pcpuset`` is None for hosts that still offer all their CPUs in ``cpuset``.
    """

    VERSION = "1.5"
    FIELDS = {
        "id": Field(int, read_only=True),
        "cpuset": Field(set[int], unset=set),
        "pcpuset": Field(set[int], since=(1, 4)),
        "memory": Field(int),
        **fields(int, "cpu_usage memory_usage", default=0),
        "pinned_cpus": Field(set[int], unset=set),
        "siblings": Field(list[set[int]], unset=list),
        "mempages": Field(list[NUMAPagesTopology], unset=list),
        "network_metadata": Field(NetworkMetadata, since=(1, 3)),
        "socket": Field(int, nullable=True, since=(1, 5)),
    }

    @classmethod
    def read_dict(cls, value: Any) -> Self:
        """Read a cell of the text form from before envelopes; ``id`` is mandatory."""
        memory = mapping(mapping(value).get("mem") or {})
        try:
            cpus = parse_cpu_spec(str(value.get("cpus") or ""))
        except ValueError as exc:
            raise BadValue(str(exc), "cpus") from exc
        return cls.read_fields(
            {
                "id": value.get("id"),
                "cpuset": cpus,
                "memory": memory.get("total", 0),
                "memory_usage": memory.get("used", 0),
                "cpu_usage": value.get("cpu_usage", 0),
                "pinned_cpus": (),
                "siblings": (),
                "mempages": (),
            }
        )


class NUMATopology(WireObject):
    """The NUMA cells of a host; false when there are none."""

    VERSION = "1.2"
    FIELDS = {"cells": Field(list[NUMACell], unset=list)}

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
            value = read_json(text)
        except ValueError as exc:
            raise errors.InvalidRequest(field=cls.__name__, reason=f"not JSON: {exc}") from exc
        if not isinstance(value, dict):
            raise errors.InvalidRequest(field=cls.__name__, reason=f"found {described(value)}")
        if registry.NAME_KEY in value:
            return from_primitive(value)
        cells = value.get("cells") or []
        if not isinstance(cells, list):
            raise errors.InvalidRequest(field="NUMATopology.cells", reason="not a list")
        return cls(cells=[NUMACell.from_dict(cell) for cell in cells])

    def to_text(self) -> str:
        """The JSON text of the envelope, as the column holds it."""
        return json.dumps(self.obj_to_primitive())


def parse_cpu_spec(text: str) -> set[int]:
    """Read ``0-3,^2,5``: numbers and ranges, without those behind ``^``; ValueError if bad."""
    included: set[int] = set()
    excluded: set[int] = set()
    for item in text.split(","):
        item = item.strip()
        if not item:
            continue
        negated = item.startswith("^")
        first, dash, last = item.removeprefix("^").partition("-")
        low = _number(first)
        high = _number(last) if dash else low
        if low > high:
            raise ValueError(f"{item!r} is not a range of CPUs")
        (excluded if negated else included).update(range(low, high + 1))
    return included - excluded


def _number(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not the number of a CPU") from None
    # The bound keeps a hostile range from filling the memory.
    if not 0 <= number <= MAX_CPU:
        raise ValueError(f"{number} is not the number of a CPU")
    return number
