"""ExactRamFilter: all the host's free memory.  Reference page filters, section 6.8."""

from scheduler.filters.base import Reason
from scheduler.filters.bounds import ExactFilter, MemoryFilter

DIFFERENT = Reason("exact_ram.different", "not exactly the memory asked for is free")


class ExactRamFilter(ExactFilter, MemoryFilter):
    """Passes hosts with exactly as much free memory as the flavor has; no overcommit."""

    reasons = (DIFFERENT,)
