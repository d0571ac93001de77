"""ExactDiskFilter: all the host's free disk.  Reference page filters, section 6.8."""

from scheduler.filters.base import Reason
from scheduler.filters.bounds import ExactFilter, LocalDiskFilter

DIFFERENT = Reason("exact_disk.different", "not exactly the disk asked for is free")


class ExactDiskFilter(ExactFilter, LocalDiskFilter):
    """Passes hosts with exactly as much free disk as root, ephemeral and swap need."""

    reasons = (DIFFERENT,)
