"""How far hosts are from what a condition wants, where that can be counted: columns at once.

One entry per reason code.  What a filter calls enough is the filter's to say; here is only how much
there is and how much was wanted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from scheduler.filters.disk_filter import wanted_disk_mb
from scheduler.hosts.candidates import Candidates


@dataclass(frozen=True, slots=True)
class Measured:
    """Per host how much there is (``found``) and is missing; ``wanted`` where it is one number.

    ``unit`` follows a number, as in "512 MiB free".
    """

    wanted: float | None
    found: np.ndarray
    missing: np.ndarray
    unit: str
    wanted_unit: str

    def wanted_text(self) -> str:
        """What every host should have; of limits that differ, the kind alone."""
        if self.wanted is None:
            return self.wanted_unit
        return f"{number(self.wanted)} {self.wanted_unit}"

    def found_text(self, place: int) -> str:
        """What the host at *place* has."""
        return f"{number(float(self.found[place]))} {self.unit}"


Measure = Callable[[Any, Candidates, Any], Measured]
"""Called with filter, hosts and request."""


def number(value: float) -> str:
    """A number for people: no more than two decimals."""
    return f"{value:.0f}" if value == int(value) else f"{value:.2f}"


def _at_least(wanted: float, found: np.ndarray, unit: str, wanted_unit: str) -> Measured:
    return Measured(wanted, found, wanted - found, unit, wanted_unit)


def _exactly(wanted: float, found: np.ndarray, unit: str, wanted_unit: str) -> Measured:
    return Measured(wanted, found, np.abs(wanted - found), unit, wanted_unit)


def _ram_in_all(_filter: Any, hosts: Candidates, request: Any) -> Measured:
    return _at_least(request.memory_mb, hosts.total_usable_ram_mb, "MiB in all", "MiB of memory")


def _ram_left(each: Any, hosts: Candidates, request: Any) -> Measured:
    total_mb = hosts.total_usable_ram_mb
    left_mb = total_mb * each.ratio(hosts) - (total_mb - hosts.free_ram_mb)
    return _at_least(request.memory_mb, left_mb, "MiB free", "MiB of memory")


def _ram_free(_filter: Any, hosts: Candidates, request: Any) -> Measured:
    return _exactly(request.memory_mb, hosts.free_ram_mb, "MiB free", "MiB of memory exactly")


def _disk_in_all(_filter: Any, hosts: Candidates, request: Any) -> Measured:
    found_mb = hosts.total_usable_disk_gb * 1024
    return _at_least(wanted_disk_mb(request), found_mb, "MiB in all", "MiB of disk")


def _disk_left(each: Any, hosts: Candidates, request: Any) -> Measured:
    total_mb = hosts.total_usable_disk_gb * 1024
    left_mb = total_mb * each.ratio(hosts) - (total_mb - hosts.free_disk_mb)
    return _at_least(wanted_disk_mb(request), left_mb, "MiB free", "MiB of disk")


def _disk_free(_filter: Any, hosts: Candidates, request: Any) -> Measured:
    wanted_mb = wanted_disk_mb(request)
    return _exactly(wanted_mb, hosts.free_disk_mb, "MiB free", "MiB of disk exactly")


def _cores_in_all(_filter: Any, hosts: Candidates, request: Any) -> Measured:
    return _at_least(request.vcpus, hosts.vcpus_total, "in all", "vCPUs")


def _cores_left(each: Any, hosts: Candidates, request: Any) -> Measured:
    left = hosts.vcpus_total * each.ratio(hosts) - hosts.vcpus_used
    return _at_least(request.vcpus, left, "free", "vCPUs")


def _cores_free(_filter: Any, hosts: Candidates, request: Any) -> Measured:
    return _exactly(request.vcpus, hosts.vcpus_total - hosts.vcpus_used, "free", "vCPUs exactly")


def _operations(each: Any, hosts: Candidates, _request: Any) -> Measured:
    return _below(each.maximum(hosts), hosts.num_io_ops, "operations going on")


def _servers(each: Any, hosts: Candidates, _request: Any) -> Measured:
    return _below(each.maximum(hosts), hosts.num_instances, "servers")


def _below(maximum: np.ndarray | float, found: np.ndarray, unit: str) -> Measured:
    if isinstance(maximum, np.ndarray):
        return Measured(None, found, found - maximum + 1, unit, f"fewer {unit} than is allowed")
    wanted_unit = f"{unit} at most, the new server included"
    return Measured(maximum, found, found - maximum + 1, unit, wanted_unit)


MEASURES: dict[str, Measure] = {
    "ram.physical": _ram_in_all,
    "aggregate_ram.physical": _ram_in_all,
    "ram.insufficient": _ram_left,
    "aggregate_ram.insufficient": _ram_left,
    "exact_ram.different": _ram_free,
    "disk.physical": _disk_in_all,
    "aggregate_disk.physical": _disk_in_all,
    "disk.insufficient": _disk_left,
    "aggregate_disk.insufficient": _disk_left,
    "exact_disk.different": _disk_free,
    "core.physical": _cores_in_all,
    "aggregate_core.physical": _cores_in_all,
    "core.insufficient": _cores_left,
    "aggregate_core.insufficient": _cores_left,
    "exact_core.different": _cores_free,
    "io_ops.busy": _operations,
    "aggregate_io_ops.busy": _operations,
    "num_instances.full": _servers,
    "aggregate_num_instances.full": _servers,
}
