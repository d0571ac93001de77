"""The NUMA topology that a guest asks for or has got (reference page objects, section 5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from scheduler.objects import json_text, registry
from scheduler.objects.base import WireObject, described
from scheduler.objects.cpu_spec import parse_cpu_spec
from scheduler.objects.enums import CPU_POLICY, CPU_THREAD_POLICY, EMULATOR_THREADS_POLICY
from scheduler.objects.fields import INT, UUID, BadValue, DictOf, Field, ListOf, SetOf, located
from scheduler.objects.nested import ObjectOf
from scheduler.objects.registry import register
from scheduler.objects.versions import Version


@register
class VirtCPUTopology(WireObject):
    """Sockets, cores and threads of a guest."""

    VERSION = "1.0"
    FIELDS = {
        "sockets": Field(INT, nullable=True, default=1),
        "cores": Field(INT, nullable=True, default=1),
        "threads": Field(INT, nullable=True, default=1),
    }


@register
class InstanceNUMACell(WireObject):
    """One NUMA cell of a guest; ``memory`` in MB, ``pagesize`` in KiB (or -1, -2, -3: a wish).

    ``cpuset`` are the CPUs that float, ``pcpuset`` those with a host CPU of their own; data from
    senders that knew only ``cpuset`` is brought to this form.
    """

    VERSION = "1.6"
    FILL_DEFAULTS = True
    FIELDS = {
        "id": Field(INT),
        "cpuset": Field(SetOf(INT), unset=set),
        "pcpuset": Field(SetOf(INT), unset=set, since=(1, 5)),
        "cpuset_reserved": Field(SetOf(INT), nullable=True, default=None, since=(1, 4)),
        "memory": Field(INT),
        "pagesize": Field(INT, nullable=True, default=None),
        "cpu_topology": Field(ObjectOf(VirtCPUTopology), nullable=True),
        "cpu_pinning_raw": Field(DictOf(INT), nullable=True, default=None),
        "cpu_policy": Field(CPU_POLICY, nullable=True, default=None),
        "cpu_thread_policy": Field(CPU_THREAD_POLICY, nullable=True, default=None),
    }

    cpuset: set[int]
    pcpuset: set[int]

    @property
    def total_cpus(self) -> set[int]:
        """All guest CPUs of the cell, floating or not."""
        return self.cpuset | self.pcpuset

    @property
    def cpu_pinning(self) -> dict[int, int] | None:
        """Guest CPU to host CPU, or None before the guest was fitted to a host."""
        raw = self.cpu_pinning_raw
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
        """Move the CPUs of a cell from before ``pcpuset`` to where they belong now."""
        dedicated = self.cpu_policy == "dedicated"
        self.pcpuset = self.cpuset if dedicated else set()
        if dedicated:
            self.cpuset = set()

    def _downgrade(self, data: dict[str, Any], version: Version) -> None:
        if version < (1, 5):
            data["cpuset"] = sorted(self.total_cpus)

    @classmethod
    def read_plain(cls, value: Any) -> Self:
        """Read a cell of a plain dict or of the oldest text; raises BadValue."""
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping):
            raise BadValue(f"a mapping is needed, not {described(value)}")
        if registry.NAME_KEY in value:
            return cls.read(dict(value))
        values = {name: value[name] for name in cls.FIELDS if name in value}
        if "cpus" in value or "mem" in value:
            values["cpuset"] = parse_cpu_spec(str(value.get("cpus") or ""))
            memory = value.get("mem") or {}
            if not isinstance(memory, Mapping):
                raise BadValue(f"a mapping is needed, not {described(memory)}", "mem")
            values["memory"] = memory.get("total", 0)
        cell = object.__new__(cls)
        for name, field in cls.FIELDS.items():
            if name in values or name in ("id", "cpuset", "memory"):
                cell.__dict__[name] = field.accept(name, values.get(name))
        cell.set_defaults()
        if "pcpuset" not in values:
            cell.split_cpuset()
        return cell


@register
class InstanceNUMATopology(WireObject):
    """The NUMA cells of a guest; false when there are none."""

    VERSION = "1.3"
    FIELDS = {
        "id": Field(INT),
        "instance_uuid": Field(UUID),
        "cells": Field(ListOf(ObjectOf(InstanceNUMACell)), unset=list),
        "emulator_threads_policy": Field(EMULATOR_THREADS_POLICY, nullable=True, since=(1, 3)),
    }

    def __len__(self) -> int:
        return len(self.cells)

    @classmethod
    def read_plain(cls, value: Any) -> Self:
        """As :meth:`from_plain`, raising BadValue with a relative path."""
        if isinstance(value, str):
            try:
                value = json_text.read(value)
            except ValueError as exc:
                raise BadValue(f"the text is not JSON: {exc}") from exc
        if not isinstance(value, Mapping):
            raise BadValue(f"a mapping is needed, not {described(value)}")
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
        topology.__dict__["cells"] = [_cell(i, cell) for i, cell in enumerate(cells)]
        return topology

    @classmethod
    def from_plain(cls, value: Any) -> Self:
        """Read an envelope, a plain dict as old requests hold it, or the JSON text of either.

        Raises InvalidRequest for anything else (sections 4.1 and 4.2).
        """
        try:
            return cls.read_plain(value)
        except BadValue as exc:
            raise cls.complaint(exc) from exc


def _cell(number: int, value: Any) -> InstanceNUMACell:
    try:
        return InstanceNUMACell.read_plain(value)
    except ValueError as exc:
        raise located(f"cells[{number}]", exc) from exc
