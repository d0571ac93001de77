"""RamFilter: enough memory, with the host's overcommit.  Reference page filters, section 6.5."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.hosts.candidates import Candidates
from scheduler.hosts.host_state import HostState

PHYSICAL = Reason("ram.physical", "the server needs more memory than the host has in all")
INSUFFICIENT = Reason("ram.insufficient", "not enough memory left, overcommit included")


class RamFilter(HostFilter):
    """Passes hosts with room for the flavor's memory under ``ram_allocation_ratio``."""

    reasons = (PHYSICAL, INSUFFICIENT)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Fits into the whole host (no server overcommits against itself), and into the rest."""
        wanted_mb = request.memory_mb
        total_mb = hosts.total_usable_ram_mb
        yield PHYSICAL, total_mb >= wanted_mb
        used_mb = total_mb - hosts.free_ram_mb
        yield INSUFFICIENT, total_mb * hosts.ram_allocation_ratio - used_mb >= wanted_mb

    def limits(self, host_state: HostState, request: Any) -> dict[str, Any]:
        """``memory_mb``: what the host may promise in all."""
        del request
        return {"memory_mb": host_state.total_usable_ram_mb * host_state.ram_allocation_ratio}
