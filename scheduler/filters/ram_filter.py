"""RamFilter, AggregateRamFilter: enough memory.  Reference page filters, section 6.5."""

from collections.abc import Iterator
from typing import Any

from scheduler.filters.base import Condition, Reason
from scheduler.filters.bounds import AggregateOvercommitFilter, OvercommitFilter, for_aggregates
from scheduler.hosts.candidates import Candidates
from scheduler.hosts.host_state import HostState

PHYSICAL = Reason("ram.physical", "the server needs more memory than the host has in all")
INSUFFICIENT = Reason("ram.insufficient", "not enough memory left, overcommit included")


class RamFilter(OvercommitFilter):
    """Passes hosts with room for the flavor's memory under ``ram_allocation_ratio``."""

    reasons = (PHYSICAL, INSUFFICIENT)
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

    reasons = for_aggregates(RamFilter.reasons)
