"""DumpFilter: every host passes, and the log tells what is known of it and of the request.

Written for Nova, as its imports show.  It runs there, and here with

    [scheduler]
    nova_compat_imports = true
    [filter_scheduler]
    available_filters = nova.scheduler.filters.all_filters
    available_filters = dump_filter.DumpFilter
    enabled_filters = ComputeFilter, DumpFilter

Each attribute is a line of its own at DEBUG: meant for a look at a few hosts, not for daily use.
"""

from nova.i18n import _
from nova.scheduler import filters
from oslo_log import log as logging

LOG = logging.getLogger(__name__)

OF_HOST = (
    *("host", "nodename", "uuid", "cell_uuid", "updated"),
    *("total_usable_ram_mb", "free_ram_mb"),
    *("total_usable_disk_gb", "disk_mb_used", "free_disk_mb"),
    *("vcpus_total", "vcpus_used"),
    *("cpu_allocation_ratio", "ram_allocation_ratio", "disk_allocation_ratio"),
    *("num_instances", "num_io_ops", "failed_builds", "instances"),
    *("numa_topology", "pci_stats", "metrics", "stats", "aggregates", "limits", "service"),
    *("host_ip", "hypervisor_hostname", "hypervisor_type", "hypervisor_version"),
    *("cpu_info", "supported_instances"),
)
OF_REQUEST = (
    *("instance_uuid", "num_instances", "project_id", "availability_zone"),
    *("flavor", "image", "numa_topology", "pci_requests"),
    *("ignore_hosts", "force_hosts", "force_nodes", "requested_destination"),
    *("scheduler_hints", "instance_group", "retry", "limits"),
)


class DumpFilter(filters.BaseHostFilter):
    """Looks at everything and objects to nothing."""

    # The host is the same for every instance of a request, but for what the earlier ones took.
    run_filter_once_per_request = True

    def host_passes(self, host_state, spec_obj):
        """Tell what is known; True."""
        for name in OF_REQUEST:
            LOG.debug(_("request: %s = %s"), name, getattr(spec_obj, name))
        for name in OF_HOST:
            LOG.debug(_("host %s: %s = %s"), host_state.host, name, getattr(host_state, name))
        return True
