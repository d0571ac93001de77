"""The host manager for fleets with bare-metal nodes (reference page scheduling, section 5.8).

Nodes whose ``hypervisor_type`` is ``ironic`` are read and consumed as wholes and show no
instances; all others are ordinary.
"""

from __future__ import annotations

from typing import Any

from scheduler.hosts import rows
from scheduler.hosts.host_manager import HostManager


class IronicHostManager(HostManager):
    """Keeps bare-metal and ordinary nodes, and may bring filters of its own."""

    @staticmethod
    def decode(row: Any, ratios: rows.Ratios, cell_uuid: str | None) -> dict[str, Any]:
        """Bare-metal nodes as such, the others as ever."""
        return rows.values_of_nodes(row, ratios, cell_uuid)

    @staticmethod
    def option_of_filters(conf: Any) -> str:
        """The filters for bare metal, if they are switched on."""
        if conf.filter_scheduler.use_baremetal_filters:
            return "baremetal_enabled_filters"
        return HostManager.option_of_filters(conf)
