"""ExactRamFilter: all the host's free memory.  Reference page filters, section 6.8."""

from collections.abc import Iterator
from typing import Any

from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.hosts.candidates import Candidates
from scheduler.hosts.host_state import HostState

DIFFERENT = Reason("exact_ram.different", "not exactly the memory asked for is free")


class ExactRamFilter(HostFilter):
    """Passes hosts with exactly as much free memory as the flavor has; no overcommit."""

    reasons = (DIFFERENT,)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """As much free as wanted."""
        yield DIFFERENT, hosts.free_ram_mb == request.memory_mb

    def limits(self, host_state: HostState, request: Any) -> dict[str, Any]:
        """``memory_mb``: all that the host has."""
        del request
        return {"memory_mb": host_state.total_usable_ram_mb}
