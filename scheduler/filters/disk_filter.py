"""DiskFilter, AggregateDiskFilter: enough local disk.  Reference page filters, section 6.7."""

from collections.abc import Iterator
from typing import Any

from scheduler.filters.base import Condition, Reason
from scheduler.filters.bounds import AggregateOvercommitFilter, OvercommitFilter, for_aggregates
from scheduler.hosts.candidates import Candidates
from scheduler.hosts.host_state import HostState

PHYSICAL = Reason("disk.physical", "the server needs more disk than the host has in all")
INSUFFICIENT = Reason("disk.insufficient", "not enough disk left, overcommit included")


def wanted_disk_mb(request: Any) -> int:
    """Root, ephemeral and swap disk of one server."""
    return 1024 * (request.root_gb + request.ephemeral_gb) + request.swap


class DiskFilter(OvercommitFilter):
    """Passes hosts with room for root, ephemeral and swap disk under ``disk_allocation_ratio``.

    A server that boots from a volume is no exception: its flavor's root disk counts.
    """

    reasons = (PHYSICAL, INSUFFICIENT)
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

    reasons = for_aggregates(DiskFilter.reasons)
