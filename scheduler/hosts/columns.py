"""The columns of the host table, and the parsing of each text document.

Attribute names are those of Nova's HostState (reference page scheduling, section 6.1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from scheduler import errors, objects
from scheduler.numa import HostTopology
from scheduler.objects.registry import read_json
from scheduler.pci import Pools

#: Seconds since the epoch where there is no time.
NEVER = float("-inf")
INT_COLUMNS = (
    "total_usable_ram_mb",
    "free_ram_mb",
    "total_usable_disk_gb",
    "disk_mb_used",
    "free_disk_mb",
    "vcpus_total",
    "vcpus_used",
    "num_instances",
    "num_io_ops",
    "failed_builds",
    "hypervisor_version",
)
RATIO_BITS = {"cpu_allocation_ratio": 1, "ram_allocation_ratio": 2, "disk_allocation_ratio": 4}
FLOAT_COLUMNS = ("cpu_allocation_ratio", "ram_allocation_ratio", "disk_allocation_ratio")
# ``node_id`` orders the rows; times are seconds since the epoch, ``-inf`` where the database holds
# none.
INTERNAL_COLUMNS = {
    "node_id": np.int64,
    "reported": np.bool_,
    # Which of its allocation ratios (RATIO_BITS) the host leaves to the configuration.
    "ratios_left_open": np.uint8,
    "updated_at": np.float64,
    "service_disabled": np.bool_,
    "service_forced_down": np.bool_,
    "service_last_seen": np.float64,
    # Only rows whose host has a service record are candidates.
    "has_service": np.bool_,
    # A bare-metal node is taken as a whole: by how many, and what was free before the first.
    "bare_metal": np.bool_,
    "takers": np.int64,
    "idle_ram_mb": np.int64,
    "idle_disk_mb": np.int64,
    "idle_vcpus_used": np.int64,
}
OBJECT_COLUMNS = ("host", "nodename", "uuid", "host_ip", "hypervisor_type", "cell_uuid")

COLUMN_TYPES: dict[str, type] = {
    **dict.fromkeys(INT_COLUMNS, np.int64),
    **dict.fromkeys(FLOAT_COLUMNS, np.float64),
    **INTERNAL_COLUMNS,
}


def _json_of(kind: type) -> Callable[[str | None], Any]:
    def parse(text: str | None) -> Any:
        if not text:
            return kind()
        try:
            value = read_json(text)
        except ValueError as error:
            raise _unreadable(text, str(error)) from error
        if not isinstance(value, kind):
            raise _unreadable(text, f"not a JSON {kind.__name__}")
        return value

    return parse


def _unreadable(text: str, reason: str) -> errors.InvalidRequest:
    return errors.InvalidRequest(field=f"{text:.80}", reason=reason)


def _read_metrics(text: str | None) -> list[objects.MonitorMetric]:
    return list(objects.MonitorMetricList.from_text(text))


def _read_topology(content: str | HostTopology | None) -> HostTopology | None:
    return content if isinstance(content, HostTopology) else HostTopology.from_text(content)


def _read_pools(content: str | Pools | None) -> Pools | None:
    """None where the host never reported; a host without devices has no pools."""
    return content if content is None or isinstance(content, Pools) else Pools.from_text(content)


def _same(content: Any) -> Any:
    return content


def aggregates_content(aggregates: tuple[objects.Aggregate, ...]) -> tuple[Any, ...]:
    """A hashable form of the aggregates of one host, in id order."""
    return tuple(
        (a.id, a.uuid, a.name, tuple(sorted((a.metadata or {}).items()))) for a in aggregates
    )


def _parse_aggregates(content: tuple[Any, ...] | None) -> list[objects.Aggregate]:
    """Old aggregates have no uuid; what is None of one stays unset."""
    names = ("id", "uuid", "name")
    found = []
    for *values, metadata in content or ():
        fields = {k: v for k, v in zip(names, values, strict=True) if v is not None}
        found.append(objects.Aggregate(**fields, metadata=dict(metadata)))
    return found


#: The instances on a row's host, as the key under which they are shown.
INSTANCES = "instances"
#: Numbers that every reservation changes.
ADDED_BY_RESERVATIONS = ("free_ram_mb", "free_disk_mb", "vcpus_used", "num_instances", "num_io_ops")
#: Documents that change while a decision is taken: to values, where the host reported text.
CHANGED_BY_RESERVATIONS = frozenset(("numa_topology", "pci_stats"))

DOCUMENT_PARSERS: dict[str, Callable[[Any], Any]] = {
    "cpu_info": _same,
    "stats": _json_of(dict),
    "supported_instances": _json_of(list),
    "numa_topology": _read_topology,
    "pci_stats": _read_pools,
    "metrics": _read_metrics,
    "aggregates": _parse_aggregates,
}
