"""ExactDiskFilter: all the host's free disk.  Reference page filters, section 6.8."""

from collections.abc import Iterator
from typing import Any

from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.filters.disk_filter import wanted_disk_mb
from scheduler.hosts.candidates import Candidates
from scheduler.hosts.host_state import HostState

DIFFERENT = Reason("exact_disk.different", "not exactly the disk asked for is free")


class ExactDiskFilter(HostFilter):
    """Passes hosts with exactly as much free disk as root, ephemeral and swap need."""

    reasons = (DIFFERENT,)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """As much free as wanted."""
        yield DIFFERENT, hosts.free_disk_mb == wanted_disk_mb(request)

    def limits(self, host_state: HostState, request: Any) -> dict[str, Any]:
        """``disk_gb``: all that the host has."""
        del request
        return {"disk_gb": host_state.total_usable_disk_gb}
