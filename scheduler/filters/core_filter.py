"""CoreFilter, AggregateCoreFilter: enough processors.  Reference page filters, section 6.6."""

from collections.abc import Iterator
from typing import Any

from oslo_log import log as logging

from scheduler.filters.base import Condition, Reason
from scheduler.filters.bounds import AggregateOvercommitFilter, OvercommitFilter, for_aggregates
from scheduler.hosts.candidates import Candidates
from scheduler.hosts.host_state import HostState

LOG = logging.getLogger(__name__)

PHYSICAL = Reason("core.physical", "the server needs more processors than the host has in all")
INSUFFICIENT = Reason("core.insufficient", "not enough processors left, overcommit included")


class CoreFilter(OvercommitFilter):
    """Passes hosts with room for the flavor's vCPUs under ``cpu_allocation_ratio``.

    A host that reports no processors at all passes: its collection is broken, not its size.
    """

    reasons = (PHYSICAL, INSUFFICIENT)
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

    reasons = for_aggregates(CoreFilter.reasons)
