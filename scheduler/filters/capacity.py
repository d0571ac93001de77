"""Filters by memory, disk and processors.  Reference page filters, sections 6.5 to 6.8."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from oslo_log import log as logging

from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.hosts import aggregate_metadata
from scheduler.hosts.candidates import Candidates
from scheduler.hosts.host_state import HostState

LOG = logging.getLogger(__name__)

RAM_PHYSICAL = "the server needs more memory than the host has in all"
RAM_INSUFFICIENT = "not enough memory left, overcommit included"
DISK_PHYSICAL = "the server needs more disk than the host has in all"
DISK_INSUFFICIENT = "not enough disk left, overcommit included"
CORE_PHYSICAL = "the server needs more processors than the host has in all"
CORE_INSUFFICIENT = "not enough processors left, overcommit included"


def wanted_disk_mb(request: Any) -> int:
    """Root, ephemeral and swap disk of one server."""
    return 1024 * (request.root_gb + request.ephemeral_gb) + request.swap


class OvercommitFilter(HostFilter):
    """Base of the filters under an allocation ratio, by default that of the host itself."""

    #: The column of the hosts' own ratios.
    ratio_column: ClassVar[str]

    def ratio(self, hosts: Candidates) -> np.ndarray:
        """Ratio by which each host's resource may be handed out."""
        ratios: np.ndarray = getattr(hosts, self.ratio_column)
        return ratios

    def ratio_of(self, host_state: HostState) -> float:
        """The same of one host."""
        if type(self).ratio is OvercommitFilter.ratio:
            return float(getattr(host_state, self.ratio_column))
        return float(self.ratio(Candidates.alone(host_state))[0])


class AggregateOvercommitFilter(OvercommitFilter):
    """Base of those in which the ratio of the host's aggregates goes before its own."""

    def ratio(self, hosts: Candidates) -> np.ndarray:
        """The smallest ratio that an aggregate of the host names, else the host's."""
        return aggregate_metadata.overridden(hosts, self.ratio_column, float, super().ratio(hosts))


class RamFilter(OvercommitFilter):
    """Passes hosts with room for the flavor's memory under ``ram_allocation_ratio``."""

    reasons = (Reason("ram.physical", RAM_PHYSICAL), Reason("ram.insufficient", RAM_INSUFFICIENT))
    ratio_column = "ram_allocation_ratio"

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Fits into the whole host (no server overcommits against itself), and into the rest."""
        physical, insufficient = self.reasons
        wanted_mb = request.memory_mb
        total_mb = hosts.total_usable_ram_mb
        yield physical, total_mb >= wanted_mb
        used_mb = total_mb - hosts.free_ram_mb
        yield insufficient, total_mb * self.ratio(hosts) - used_mb >= wanted_mb

    def limits(self, host_state: HostState, request: Any) -> dict[str, Any]:
        """``memory_mb``: what the host may promise in all."""
        del request
        return {"memory_mb": host_state.total_usable_ram_mb * self.ratio_of(host_state)}


class AggregateRamFilter(AggregateOvercommitFilter, RamFilter):
    """The same, with the ``ram_allocation_ratio`` of the host's aggregates before its own."""

    reasons = (
        Reason("aggregate_ram.physical", RAM_PHYSICAL),
        Reason("aggregate_ram.insufficient", RAM_INSUFFICIENT),
    )


class ExactRamFilter(HostFilter):
    """Passes hosts with exactly as much free memory as the flavor has; no overcommit."""

    reasons = (Reason("exact_ram.different", "not exactly the memory asked for is free"),)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """As much free as wanted."""
        yield self.reasons[0], hosts.free_ram_mb == request.memory_mb

    def limits(self, host_state: HostState, request: Any) -> dict[str, Any]:
        """``memory_mb``: all that the host has."""
        del request
        return {"memory_mb": host_state.total_usable_ram_mb}


class DiskFilter(OvercommitFilter):
    """Passes hosts with room for root, ephemeral and swap disk under ``disk_allocation_ratio``.

    A server that boots from a volume is no exception: its flavor's root disk counts.
    """

    reasons = (
        Reason("disk.physical", DISK_PHYSICAL),
        Reason("disk.insufficient", DISK_INSUFFICIENT),
    )
    ratio_column = "disk_allocation_ratio"

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Fits into the whole host (no server overcommits against itself), and into the rest."""
        physical, insufficient = self.reasons
        wanted_mb = wanted_disk_mb(request)
        total_mb = hosts.total_usable_disk_gb * 1024
        yield physical, total_mb >= wanted_mb
        used_mb = total_mb - hosts.free_disk_mb
        yield insufficient, total_mb * self.ratio(hosts) - used_mb >= wanted_mb

    def limits(self, host_state: HostState, request: Any) -> dict[str, Any]:
        """``disk_gb``: what the host may promise in all."""
        del request
        return {"disk_gb": host_state.total_usable_disk_gb * self.ratio_of(host_state)}


class AggregateDiskFilter(AggregateOvercommitFilter, DiskFilter):
    """The same, with the ``disk_allocation_ratio`` of the host's aggregates before its own."""

    reasons = (
        Reason("aggregate_disk.physical", DISK_PHYSICAL),
        Reason("aggregate_disk.insufficient", DISK_INSUFFICIENT),
    )


class ExactDiskFilter(HostFilter):
    """Passes hosts with exactly as much free disk as root, ephemeral and swap need."""

    reasons = (Reason("exact_disk.different", "not exactly the disk asked for is free"),)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """As much free as wanted."""
        yield self.reasons[0], hosts.free_disk_mb == wanted_disk_mb(request)

    def limits(self, host_state: HostState, request: Any) -> dict[str, Any]:
        """``disk_gb``: all that the host has."""
        del request
        return {"disk_gb": host_state.total_usable_disk_gb}


class CoreFilter(OvercommitFilter):
    """Passes hosts with room for the flavor's vCPUs under ``cpu_allocation_ratio``.

    A host that reports no processors at all passes: its collection is broken, not its size.
    """

    reasons = (
        Reason("core.physical", CORE_PHYSICAL),
        Reason("core.insufficient", CORE_INSUFFICIENT),
    )
    ratio_column = "cpu_allocation_ratio"

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Fits into the whole host, unless the ratio is 0, and into the rest."""
        physical, insufficient = self.reasons
        wanted, total = request.vcpus, hosts.vcpus_total
        unknown = total == 0
        if unknown.any():
            LOG.warning("VCPUs not set; assuming CPU collection broken")
        limit = total * self.ratio(hosts)
        yield physical, unknown | (limit <= 0) | (total >= wanted)
        yield insufficient, unknown | (limit - hosts.vcpus_used >= wanted)

    def limits(self, host_state: HostState, request: Any) -> dict[str, Any]:
        """``vcpu``: what the host may promise in all; none where it reports no processors."""
        del request
        limit = host_state.vcpus_total * self.ratio_of(host_state)
        return {"vcpu": limit} if limit > 0 else {}


class AggregateCoreFilter(AggregateOvercommitFilter, CoreFilter):
    """The same, with the ``cpu_allocation_ratio`` of the host's aggregates before its own."""

    reasons = (
        Reason("aggregate_core.physical", CORE_PHYSICAL),
        Reason("aggregate_core.insufficient", CORE_INSUFFICIENT),
    )


class ExactCoreFilter(HostFilter):
    """Passes hosts with exactly as many free processors as the flavor has; no overcommit."""

    reasons = (
        Reason("exact_core.unknown", "the host does not report its processors"),
        Reason("exact_core.different", "not exactly the processors asked for are free"),
    )

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Processors known, and as many free as wanted."""
        unknown, different = self.reasons
        known = hosts.vcpus_total != 0
        if not known.all():
            LOG.warning("VCPUs not set; assuming CPU collection broken")
        yield unknown, known
        yield different, hosts.vcpus_total - hosts.vcpus_used == request.vcpus

    def limits(self, host_state: HostState, request: Any) -> dict[str, Any]:
        """``vcpu``: all that the host has."""
        del request
        return {"vcpu": host_state.vcpus_total}
