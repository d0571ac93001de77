"""From a ``compute_nodes`` row to the values of the host table: every coercion is here.

Reference page scheduling, sections 6.1 and 6.2; page database, sections 3.1 and 5.
"""

from __future__ import annotations

import datetime
import sys
from dataclasses import dataclass
from typing import Any

from oslo_log import log as logging

from scheduler import semantics
from scheduler.hosts import columns
from scheduler.hosts.table import NEVER, Key
from scheduler.objects.fields import LARGEST_SIZE
from scheduler.objects.registry import read_json
from scheduler.pci import Pools
from scheduler.semantics import Semantics

LOG = logging.getLogger(__name__)

_EPOCH = datetime.datetime(1970, 1, 1)

#: ``hypervisor_type`` of the bare-metal nodes.
IRONIC = "ironic"
_DOCUMENTS = ("cpu_info", "stats", "supported_instances", "numa_topology", "metrics")
#: Columns that are not read from the row of a bare-metal node.
_UNKNOWN_OF_BARE_METAL = {
    "disk_mb_used": 0,
    "num_instances": 0,
    "num_io_ops": 0,
    "host_ip": None,
    "numa_topology": None,
    "pci_stats": None,
    "metrics": None,
}


@dataclass(frozen=True, slots=True)
class Ratios:
    """Allocation ratios for rows that hold none (NULL or 0.0)."""

    cpu: float
    ram: float
    disk: float

    @classmethod
    def from_conf(cls, conf: Any) -> Ratios:
        """The plain option if it is set and not 0, else what the semantics fall back to."""
        cpu, ram, disk = semantics.from_conf(conf).fallback_ratios(conf)
        return cls(
            cpu=conf.cpu_allocation_ratio or cpu,
            ram=conf.ram_allocation_ratio or ram,
            disk=conf.disk_allocation_ratio or disk,
        )


def seconds(when: datetime.datetime | None) -> float:
    """Seconds since the epoch of a naive UTC (or aware) time; never for None, or for no time.

    What is no date at all (``0000-00-00`` of MySQL) comes as the text that it is.
    """
    if not isinstance(when, datetime.datetime):
        return NEVER
    if when.tzinfo is not None:
        when = when.astimezone(datetime.UTC).replace(tzinfo=None)
    return (when - _EPOCH).total_seconds()


def last_seen(service: Any, chosen: Semantics = semantics.CURRENT) -> float:
    """When the *service* of a row was last heard from, seconds since the epoch."""
    return seconds(chosen.last_heartbeat(service))


def key(row: Any) -> Key:
    """(host, node) of a compute node's row: mostly the same name, as its service has it, too."""
    return once(row.host), once(row.hypervisor_hostname)


def once(text: Any) -> Any:
    """*text* as the one object that is kept of all texts that are equal."""
    return sys.intern(text) if type(text) is str else text


def values(row: Any, ratios: Ratios, cell_uuid: str | None) -> dict[str, Any]:
    """Column, document and object values for the host table.

    A row that its host never filled in (``free_disk_gb`` is NULL) yields zeros and
    ``reported`` False.
    """
    identity = {
        "node_id": row.id,
        "uuid": row.uuid,
        "cell_uuid": cell_uuid,
        "updated_at": seconds(row.updated_at),
        "reported": row.free_disk_gb is not None,
    }
    if row.free_disk_gb is None:
        LOG.debug("Ignoring compute node %s as its usage has not been updated yet.", row.uuid)
        return identity
    documents = {name: getattr(row, name) for name in _DOCUMENTS}
    documents["pci_stats"] = Pools() if row.pci_stats is None else row.pci_stats
    return {**identity, **_resources(row), **documents, **_ratios(row, ratios)}


def values_of_nodes(row: Any, ratios: Ratios, cell_uuid: str | None) -> dict[str, Any]:
    """The same where some nodes are bare metal (reference page scheduling, section 5.8)."""
    is_metal = row.hypervisor_type == IRONIC
    found = {**values(row, ratios, cell_uuid), "bare_metal": is_metal}
    if not is_metal or not found["reported"]:
        return found
    free_disk_mb = 1024 * int(row.free_disk_gb)
    return {**found, **_UNKNOWN_OF_BARE_METAL, "free_disk_mb": free_disk_mb}


def _resources(row: Any) -> dict[str, Any]:
    stats = _stats(row.stats)
    return {
        "total_usable_ram_mb": row.memory_mb or 0,
        "free_ram_mb": row.free_ram_mb or 0,
        "total_usable_disk_gb": row.local_gb or 0,
        "disk_mb_used": (row.local_gb_used or 0) * 1024,
        "free_disk_mb": 1024 * _free_disk_gb(row),
        "vcpus_total": row.vcpus or 0,
        "vcpus_used": row.vcpus_used or 0,
        "num_instances": _count(stats, "num_instances", row),
        "num_io_ops": _count(stats, "io_workload", row),
        "failed_builds": _count(stats, "failed_builds", row),
        "hypervisor_version": row.hypervisor_version or 0,
        "hypervisor_type": once(row.hypervisor_type),
        "host_ip": row.host_ip,
    }


def _ratios(row: Any, ratios: Ratios) -> dict[str, float]:
    left_open = sum(bit for name, bit in columns.RATIO_BITS.items() if not getattr(row, name))
    return {
        "ratios_left_open": left_open,
        "cpu_allocation_ratio": row.cpu_allocation_ratio or ratios.cpu,
        "ram_allocation_ratio": row.ram_allocation_ratio or ratios.ram,
        "disk_allocation_ratio": row.disk_allocation_ratio or ratios.disk,
    }


def _free_disk_gb(row: Any) -> int:
    least, free = row.disk_available_least, row.free_disk_gb
    if least is not None and least > free and row.hypervisor_type != IRONIC:
        LOG.warning(
            "Host %s has more disk space than database expected (%s GB > %s GB)",
            row.hypervisor_hostname,
            least,
            free,
        )
    return int(free if least is None else min(free, least))


def _stats(text: str | None) -> dict[str, Any]:
    if not text:
        return {}
    try:
        stats = read_json(text)
    except ValueError:
        return {}
    return stats if isinstance(stats, dict) else {}


def _count(stats: dict[str, Any], name: str, row: Any) -> int:
    value = stats.get(name, 0)
    try:
        return max(-LARGEST_SIZE, min(LARGEST_SIZE, int(value)))
    except (TypeError, ValueError, OverflowError):
        LOG.warning(
            "Compute node %s reports %r as %s; counted as 0", row.hypervisor_hostname, value, name
        )
        return 0
