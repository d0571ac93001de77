"""Filters that today's Nova leaves to Placement, as plain arithmetic on Nova's host states."""

from typing import Any

import nova.conf
from nova.scheduler import filters
from nova.scheduler.filters import utils


def has_room(total: float, used: float, ratio: float, wanted: float) -> bool:
    """No server overcommits against itself; together they may, up to *ratio*."""
    return wanted <= total and wanted <= total * ratio - used


class RamFilter(filters.BaseHostFilter):
    RUN_ON_REBUILD = False

    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        """Memory of the host, less what is handed out."""
        total = host_state.total_usable_ram_mb
        used = total - host_state.free_ram_mb
        return has_room(total, used, host_state.ram_allocation_ratio, spec_obj.memory_mb)


class CoreFilter(filters.BaseHostFilter):
    RUN_ON_REBUILD = False

    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        """Processors of the host, less what is handed out."""
        used, ratio = host_state.vcpus_used, host_state.cpu_allocation_ratio
        return has_room(host_state.vcpus_total, used, ratio, spec_obj.vcpus)


class DiskFilter(filters.BaseHostFilter):
    RUN_ON_REBUILD = False

    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        """Disk of the host, less what is handed out."""
        wanted = 1024 * (spec_obj.root_gb + spec_obj.ephemeral_gb) + spec_obj.swap
        total = 1024 * host_state.total_usable_disk_gb
        used = total - host_state.free_disk_mb
        return has_room(total, used, host_state.disk_allocation_ratio, wanted)


class AvailabilityZoneFilter(filters.BaseHostFilter):
    RUN_ON_REBUILD = False
    run_filter_once_per_request = True

    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        """Zones are metadata of aggregates; a host without any is in the default zone."""
        wanted = spec_obj.availability_zone
        zones = utils.aggregate_values_from_key(host_state, "availability_zone")
        return not wanted or wanted in (zones or {nova.conf.CONF.default_availability_zone})
