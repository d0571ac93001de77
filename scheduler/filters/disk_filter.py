"""DiskFilter: enough local disk, with the host's overcommit.  Reference page filters, 6.7."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.hosts.candidates import Candidates
from scheduler.hosts.host_state import HostState

PHYSICAL = Reason("disk.physical", "the server needs more disk than the host has in all")
INSUFFICIENT = Reason("disk.insufficient", "not enough disk left, overcommit included")


class DiskFilter(HostFilter):
    """Passes hosts with room for root, ephemeral and swap disk under ``disk_allocation_ratio``.

    A server that boots from a volume is no exception: its flavor's root disk counts.
    """

    reasons = (PHYSICAL, INSUFFICIENT)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Fits into the whole host (no server overcommits against itself), and into the rest."""
        wanted_mb = 1024 * (request.root_gb + request.ephemeral_gb) + request.swap
        total_mb = hosts.total_usable_disk_gb * 1024
        yield PHYSICAL, total_mb >= wanted_mb
        used_mb = total_mb - hosts.free_disk_mb
        yield INSUFFICIENT, total_mb * hosts.disk_allocation_ratio - used_mb >= wanted_mb

    def limits(self, host_state: HostState, request: Any) -> dict[str, Any]:
        """``disk_gb``: what the host may promise in all."""
        del request
        return {"disk_gb": host_state.total_usable_disk_gb * host_state.disk_allocation_ratio}
