"""What the host table keeps in columns, and how each text document is parsed.

Attribute names are those of Nova's HostState (reference page scheduling, section 6.1).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from oslo_log import log as logging

from scheduler import errors, objects
from scheduler.pci import Pools

LOG = logging.getLogger(__name__)

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
FLOAT_COLUMNS = ("cpu_allocation_ratio", "ram_allocation_ratio", "disk_allocation_ratio")
# ``node_id`` orders the rows; ``host_number`` is the interned host name; times are seconds since
# the epoch, ``-inf`` where the database holds none.
INTERNAL_COLUMNS = {
    "node_id": np.int64,
    "host_number": np.int64,
    "reported": np.bool_,
    "updated_at": np.float64,
    "service_disabled": np.bool_,
    # A bare-metal node is taken as a whole: by how many, and what was free before the first.
    "bare_metal": np.bool_,
    "takers": np.int64,
    "idle_ram_mb": np.int64,
    "idle_disk_mb": np.int64,
    "idle_vcpus_used": np.int64,
    "service_forced_down": np.bool_,
    "service_last_seen": np.float64,
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
            value = json.loads(text)
        except ValueError:
            value = None
        if not isinstance(value, kind):
            LOG.warning("A compute node's document is not a JSON %s: %.80r", kind.__name__, text)
            return kind()
        return value

    return parse


def _read_metrics(text: str | None) -> list[objects.MonitorMetric]:
    return list(objects.MonitorMetricList.from_text(text))


def _read_with(read: Callable[[str | None], Any], what: str) -> Callable[[str | None], Any]:
    def parse(text: str | None) -> Any:
        try:
            return read(text)
        except errors.InvalidRequest as error:
            LOG.warning("A compute node's %s cannot be read and count as none: %s", what, error)
            return read(None)

    return parse


def _same(content: Any) -> Any:
    return content


def aggregates_content(aggregates: tuple[objects.Aggregate, ...]) -> tuple[Any, ...]:
    """A hashable form of the aggregates of one host, in id order."""
    return tuple(
        (a.id, a.uuid, a.name, tuple(sorted((a.metadata or {}).items()))) for a in aggregates
    )


def _parse_aggregates(content: tuple[Any, ...]) -> list[objects.Aggregate]:
    return [
        objects.Aggregate(id=number, uuid=uuid, name=name, metadata=dict(metadata))
        for number, uuid, name, metadata in content
    ]


#: Documents that change while a decision is taken.
CHANGED_BY_PICKS = frozenset(("numa_topology", "pci_stats"))

DOCUMENT_PARSERS: dict[str, Callable[[Any], Any]] = {
    "cpu_info": _same,
    "stats": _json_of(dict),
    "supported_instances": _json_of(list),
    "numa_topology": _same,
    "pci_stats": _read_with(Pools.from_text, "PCI pools"),
    "metrics": _read_with(_read_metrics, "metrics"),
    "aggregates": _parse_aggregates,
}
