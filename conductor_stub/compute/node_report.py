"""What one host writes into its compute node's columns: reference page database, 3.1 and 5."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

from conductor_stub.compute import documents, resources
from conductor_stub.compute.layout import Layout, Place
from conductor_stub.compute.profiles import HostPlan
from scheduler.hosts.fitting import Fitting


class NodeReport:
    """The columns of the node of *plan*'s host, which has one node of its own name.

    *clock* gives naive UTC without fractions, *fitting* is how cells and devices are given out.
    """

    def __init__(
        self,
        plan: HostPlan,
        reserved: resources.Reserved,
        host_ip: str,
        clock: Callable[[], datetime.datetime],
        fitting: Fitting,
    ) -> None:
        self.host = self.node = plan.name
        self.kind = plan.kind
        self.reserved = reserved
        self._host_ip = host_ip
        self._clock = clock
        self._layout = Layout(plan.kind, fitting)

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
            "metrics": documents.metrics(kind, self._clock()),
            **self.usage(instances, failed_builds),
        }

    def usage(self, instances: Sequence[Any], failed_builds: int) -> dict[str, Any]:
        """The columns that follow from the *instances* on the host."""
        return {
            **resources.usage_columns(self.kind, instances, self.reserved),
            "stats": resources.stats(instances, failed_builds, self.kind.stats),
            **self._layout.columns(instances),
        }

    def place(self, present: Sequence[Any], newcomer: Any, limits: dict[str, Any]) -> Place:
        """The cells and devices of *newcomer* beside *present*.

        Raises ``ComputeResourcesUnavailable`` if it does not fit.
        """
        total = resources.used(present, self.reserved)
        resources.check_limits(total, resources.Amounts.of(newcomer), limits)
        return self._layout.place(present, newcomer, limits)
