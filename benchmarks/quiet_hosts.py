"""A filter of somebody else's: it looks at one host at a time.  Twin of the one for Nova."""

from typing import Any

from scheduler.filters import BaseHostFilter


class QuietHostsFilter(BaseHostFilter):
    """Only hosts with fewer than three builds going on and some memory left."""

    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        """Look at two numbers."""
        return bool(host_state.num_io_ops < 3 and host_state.free_ram_mb > spec_obj.memory_mb)
