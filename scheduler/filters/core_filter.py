"""CoreFilter: enough processors, with the host's overcommit.  Reference page filters, 6.6."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oslo_log import log as logging

from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.hosts.candidates import Candidates
from scheduler.hosts.host_state import HostState

LOG = logging.getLogger(__name__)

PHYSICAL = Reason("core.physical", "the server needs more processors than the host has in all")
INSUFFICIENT = Reason("core.insufficient", "not enough processors left, overcommit included")


class CoreFilter(HostFilter):
    """Passes hosts with room for the flavor's vCPUs under ``cpu_allocation_ratio``.

    A host that reports no processors at all passes: its collection is broken, not its size.
    """

    reasons = (PHYSICAL, INSUFFICIENT)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Fits into the whole host, unless the ratio is 0, and into the rest."""
        wanted, total = request.vcpus, hosts.vcpus_total
        unknown = total == 0
        if unknown.any():
            LOG.warning("VCPUs not set; assuming CPU collection broken")
        limit = total * hosts.cpu_allocation_ratio
        yield PHYSICAL, unknown | (limit <= 0) | (total >= wanted)
        yield INSUFFICIENT, unknown | (limit - hosts.vcpus_used >= wanted)

    def limits(self, host_state: HostState, request: Any) -> dict[str, Any]:
        """``vcpu``: what the host may promise in all; none where it reports no processors."""
        del request
        limit = host_state.vcpus_total * host_state.cpu_allocation_ratio
        return {"vcpu": limit} if limit > 0 else {}
