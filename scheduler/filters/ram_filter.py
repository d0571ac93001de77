"""RamFilter, AggregateRamFilter: enough memory.  Reference page filters, section 6.5."""

from scheduler.filters import bounds
from scheduler.filters.base import Reason

PHYSICAL = Reason("ram.physical", "the server needs more memory than the host has in all")
INSUFFICIENT = Reason("ram.insufficient", "not enough memory left, overcommit included")


class RamFilter(bounds.OvercommitFilter, bounds.MemoryFilter):
    """Passes hosts with room for the flavor's memory under ``ram_allocation_ratio``."""

    reasons = (PHYSICAL, INSUFFICIENT)
    ratio_column = "ram_allocation_ratio"


class AggregateRamFilter(bounds.AggregateOvercommitFilter, RamFilter):
    """The same, with the ``ram_allocation_ratio`` of the host's aggregates before its own."""

    reasons = bounds.for_aggregates(RamFilter.reasons)
