"""What one host writes into its compute node's columns: reference page database, 3.1 and 5."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

from conductor_stub.compute import documents, pci, resources
from conductor_stub.compute.profiles import HostPlan


class NodeReport:
    """The columns of the node of *plan*'s host, which has one node of its own name.

    *clock* gives naive UTC without fractions.
    """

    def __init__(
        self,
        plan: HostPlan,
        reserved: resources.Reserved,
        host_ip: str,
        clock: Callable[[], datetime.datetime],
    ) -> None:
        self.host = self.node = plan.name
        self.kind = plan.kind
        self.reserved = reserved
        self._host_ip = host_ip
        self._clock = clock

    def everything(self, instances: Sequence[Any], failed_builds: int) -> dict[str, Any]:
        """All columns, for a new row or a periodic report."""
        kind = self.kind
        return {
            "host": self.host,
            "hypervisor_hostname": self.node,
            "vcpus": kind.vcpus,
            "memory_mb": kind.memory_mb,
            "local_gb": kind.local_gb,
            "hypervisor_type": kind.hypervisor_type,
            "hypervisor_version": kind.hypervisor_version,
            "cpu_allocation_ratio": kind.cpu_allocation_ratio,
            "ram_allocation_ratio": kind.ram_allocation_ratio,
            "disk_allocation_ratio": kind.disk_allocation_ratio,
            "host_ip": self._host_ip,
            "cpu_info": documents.cpu_info(kind),
            "supported_instances": documents.supported_instances(kind),
            "numa_topology": documents.numa_topology(kind),
            "metrics": documents.metrics(kind, self._clock()),
            **self.usage(instances, failed_builds),
        }

    def usage(self, instances: Sequence[Any], failed_builds: int) -> dict[str, Any]:
        """The columns that follow from the *instances* on the host."""
        pools = pci.free_pools(self.kind.pci_pools, instances)
        return {
            **resources.usage_columns(self.kind, instances, self.reserved),
            "stats": resources.stats(instances, failed_builds, self.kind.stats),
            "pci_stats": documents.pci_stats(pools),
        }

    def check_fits(self, present: Sequence[Any], newcomer: Any, limits: dict[str, Any]) -> None:
        """Raise ``ComputeResourcesUnavailable`` if *newcomer* does not fit beside *present*."""
        total = resources.used(present, self.reserved)
        resources.check_limits(total, resources.Amounts.of(newcomer), limits)
        pci.check(self.kind.pci_pools, present, newcomer)
