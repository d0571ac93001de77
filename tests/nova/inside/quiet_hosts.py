"""A filter of somebody else's, as Nova loads it; its twin is ``benchmarks.quiet_hosts``."""

from nova.scheduler import filters


class QuietHostsFilter(filters.BaseHostFilter):
    """Only hosts with fewer than three builds going on and some memory left."""

    def host_passes(self, host_state, spec_obj):
        return host_state.num_io_ops < 3 and host_state.free_ram_mb > spec_obj.memory_mb
