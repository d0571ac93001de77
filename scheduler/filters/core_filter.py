"""CoreFilter, AggregateCoreFilter: enough processors.  Reference page filters, section 6.6."""

from collections.abc import Iterator
from typing import Any

from scheduler.filters import bounds
from scheduler.filters.base import Condition, Reason
from scheduler.hosts.candidates import Candidates
from scheduler.hosts.host_state import HostState

PHYSICAL = Reason("core.physical", "the server needs more processors than the host has in all")
INSUFFICIENT = Reason("core.insufficient", "not enough processors left, overcommit included")


class CoreFilter(bounds.OvercommitFilter, bounds.ProcessorFilter):
    """Passes hosts with room for the flavor's vCPUs under ``cpu_allocation_ratio``.

    A host that reports no processors at all passes: its collection is broken, not its size.
    """

    reasons = (PHYSICAL, INSUFFICIENT)
    ratio_column = "cpu_allocation_ratio"

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Compare with the whole host, unless the ratio is 0, and with the rest."""
        physical, insufficient = self.reasons
        wanted, total, unknown = request.vcpus, hosts.vcpus_total, self.unknown(hosts)
        limit = total * self.ratio(hosts)
        yield physical, unknown | (limit <= 0) | (total >= wanted)
        yield insufficient, unknown | (limit - hosts.vcpus_used >= wanted)

    def limits(self, host_state: HostState, request: Any) -> dict[str, Any]:
        """The amount that the host may promise; none where it reports no processors."""
        found = super().limits(host_state, request)
        return found if found[self.limit] > 0 else {}


class AggregateCoreFilter(bounds.AggregateOvercommitFilter, CoreFilter):
    """The same, with the ``cpu_allocation_ratio`` of the host's aggregates before its own."""

    reasons = bounds.for_aggregates(CoreFilter.reasons)
