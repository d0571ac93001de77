"""DiskFilter, AggregateDiskFilter: enough local disk.  Reference page filters, section 6.7."""

from scheduler.filters import bounds
from scheduler.filters.base import Reason

PHYSICAL = Reason("disk.physical", "the server needs more disk than the host has in all")
INSUFFICIENT = Reason("disk.insufficient", "not enough disk left, overcommit included")


class DiskFilter(bounds.OvercommitFilter, bounds.LocalDiskFilter):
    """Passes hosts with room for root, ephemeral and swap disk under ``disk_allocation_ratio``.

    A server that boots from a volume is no exception: its flavor's root disk counts.
    """

    reasons = (PHYSICAL, INSUFFICIENT)
    ratio_column = "disk_allocation_ratio"


class AggregateDiskFilter(bounds.AggregateOvercommitFilter, DiskFilter):
    """The same, with the ``disk_allocation_ratio`` of the host's aggregates before its own."""

    reasons = bounds.for_aggregates(DiskFilter.reasons)
