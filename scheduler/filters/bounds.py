"""Bases of the filters that ask for room, or for less than a maximum; aggregates may set bounds."""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from oslo_log import log as logging

from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.hosts.candidates import Candidates
from scheduler.hosts.host_state import HostState

LOG = logging.getLogger(__name__)
Amounts = tuple[float, np.ndarray, np.ndarray]
"""Amount of a resource that a server wants; and per host how much there is in all, and free."""


def for_aggregates(reasons: tuple[Reason, ...]) -> Any:
    """The same *reasons* under the codes of the filter that asks aggregates first."""
    return tuple(Reason(f"aggregate_{each.code}", each.text) for each in reasons)


class ResourceFilter(HostFilter):
    is_rule = False

    #: The limit for the chosen host's compute service, and the column that it is made of.
    limit: ClassVar[str]
    total_column: ClassVar[str]

    def amounts(self, hosts: Candidates, request: Any) -> Amounts:
        raise NotImplementedError


class MemoryFilter(ResourceFilter):
    limit = "memory_mb"
    total_column = "total_usable_ram_mb"

    def amounts(self, hosts: Candidates, request: Any) -> Amounts:
        """The flavor's memory, in MiB."""
        return request.memory_mb, hosts.total_usable_ram_mb, hosts.free_ram_mb


class LocalDiskFilter(ResourceFilter):
    limit = "disk_gb"
    total_column = "total_usable_disk_gb"

    def amounts(self, hosts: Candidates, request: Any) -> Amounts:
        """Root, ephemeral and swap disk of one server, in MiB."""
        wanted_mb = 1024 * (request.root_gb + request.ephemeral_gb) + request.swap
        return wanted_mb, hosts.total_usable_disk_gb * 1024, hosts.free_disk_mb


class ProcessorFilter(ResourceFilter):
    limit = "vcpu"
    total_column = "vcpus_total"

    def amounts(self, hosts: Candidates, request: Any) -> Amounts:
        return request.vcpus, hosts.vcpus_total, hosts.vcpus_total - hosts.vcpus_used

    def unknown(self, hosts: Candidates) -> np.ndarray:
        unknown: np.ndarray = hosts.vcpus_total == 0
        if unknown.any():
            LOG.warning("VCPUs not set; assuming CPU collection broken")
        return unknown


class OvercommitFilter(ResourceFilter):
    """Base of the filters under an allocation ratio, by default that of the host itself."""

    #: The column of the hosts' own ratios.
    ratio_column: ClassVar[str]

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Compare with the whole host (no server overcommits against itself), and with the rest."""
        physical, insufficient = self.reasons
        wanted, total, free = self.amounts(hosts, request)
        yield physical, total >= wanted
        yield insufficient, total * self.ratio(hosts) - (total - free) >= wanted

    def limits(self, host_state: HostState, request: Any) -> dict[str, Any]:
        """The amount that the host may promise in all."""
        return {self.limit: getattr(host_state, self.total_column) * self.ratio_of(host_state)}

    def ratio(self, hosts: Candidates) -> np.ndarray:
        """Ratio by which each host's resource may be handed out."""
        return getattr(hosts, self.ratio_column)

    def ratio_of(self, host_state: HostState) -> float:
        if type(self).ratio is OvercommitFilter.ratio:
            return float(getattr(host_state, self.ratio_column))
        return float(self.ratio(Candidates.alone(host_state))[0])


class AggregateOvercommitFilter(OvercommitFilter):
    """Base of those in which the smallest ratio of the host's aggregates goes before its own."""

    def ratio(self, hosts: Candidates) -> np.ndarray:
        return hosts.overridden(self.ratio_column, float, super().ratio(hosts))


class ExactFilter(ResourceFilter):
    """Base of the filters for all the host's free room; no overcommit."""

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        wanted, _total, free = self.amounts(hosts, request)
        yield self.reasons[-1], free == wanted

    def limits(self, host_state: HostState, request: Any) -> dict[str, Any]:
        return {self.limit: getattr(host_state, self.total_column)}


class MaximumFilter(HostFilter):
    """Base of the filters under a maximum, by default that of an option."""

    is_rule = False

    #: The column that stays below the maximum.
    column: ClassVar[str]
    maximum_option: ClassVar[str]

    def __init__(self, conf: Any) -> None:
        super().__init__(conf)
        self.configured_maximum = conf.filter_scheduler[self.maximum_option]

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Below the maximum before this server is added."""
        yield self.reasons[0], getattr(hosts, self.column) < self.maximum(hosts)

    def maximum(self, hosts: Candidates) -> np.ndarray | float:
        return self.configured_maximum


class AggregateMaximumFilter(MaximumFilter):
    """Base of those in which the smallest maximum of the aggregates goes before the option."""

    def maximum(self, hosts: Candidates) -> np.ndarray | float:
        return hosts.overridden(self.maximum_option, int, super().maximum(hosts))
