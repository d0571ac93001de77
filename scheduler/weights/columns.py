"""Weighers that read one column of the host table, or a figure of one document.

Reference page scheduling, section 7.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.hosts.candidates import Candidates
from scheduler.pci import Pools
from scheduler.weights.base import HostWeigher

#: From this number on more free PCI devices make no difference.
_MANY_DEVICES = 99


class RAMWeigher(HostWeigher):
    """The host's free memory; less than nothing counts as none."""

    minval = 0
    multiplier_option = "ram_weight_multiplier"

    def raw(self, hosts: Candidates, request: Any) -> np.ndarray:
        """Free memory in MB, without overcommit."""
        del request
        return hosts.free_ram_mb


class DiskWeigher(HostWeigher):
    """The host's free disk; less than nothing counts as none."""

    minval = 0
    multiplier_option = "disk_weight_multiplier"

    def raw(self, hosts: Candidates, request: Any) -> np.ndarray:
        """Free disk in MB, without overcommit."""
        del request
        return hosts.free_disk_mb


class CPUWeigher(HostWeigher):
    """The host's free processors under its overcommit; less than nothing counts as none."""

    minval = 0
    multiplier_option = "cpu_weight_multiplier"

    def raw(self, hosts: Candidates, request: Any) -> np.ndarray:
        """Processors that may be handed out, less those that are."""
        del request
        return hosts.vcpus_total * hosts.cpu_allocation_ratio - hosts.vcpus_used


class IoOpsWeigher(HostWeigher):
    """Number of servers in the middle of an operation."""

    minval = 0
    multiplier_option = "io_ops_weight_multiplier"

    def raw(self, hosts: Candidates, request: Any) -> np.ndarray:
        """The number of operations."""
        del request
        return hosts.num_io_ops


class NumInstancesWeigher(HostWeigher):
    """Number of servers on the host.  Off unless its multiplier is set."""

    multiplier_option = "num_instances_weight_multiplier"

    def raw(self, hosts: Candidates, request: Any) -> np.ndarray:
        """The number of servers."""
        del request
        return hosts.num_instances


class HypervisorVersionWeigher(HostWeigher):
    """The version of the host's hypervisor; one that is not known is the oldest."""

    multiplier_option = "hypervisor_version_weight_multiplier"

    def raw(self, hosts: Candidates, request: Any) -> np.ndarray:
        """The version as a number, e.g. 2005001 for 2.5.1."""
        del request
        return hosts.hypervisor_version


class BuildFailureWeigher(HostWeigher):
    """Number of builds that failed on the host since the last one that did not."""

    multiplier_option = "build_failure_weight_multiplier"

    def raw(self, hosts: Candidates, request: Any) -> np.ndarray:
        """The number of failures."""
        del request
        return hosts.failed_builds

    def multipliers(self, hosts: Candidates) -> np.ndarray | float:
        """The configured multipliers, as a penalty."""
        return -super().multipliers(hosts)

    def weight_multiplier(self, host_state: Any) -> float:
        """The configured multiplier of one host, as a penalty."""
        return -super().weight_multiplier(host_state)


class PCIWeigher(HostWeigher):
    """The fewer free devices, the better; what the request needs is the filter's business."""

    multiplier_option = "pci_weight_multiplier"

    def raw(self, hosts: Candidates, request: Any) -> np.ndarray:
        """From 100 without free devices to 1 with 99 or more."""
        del request
        return hosts.per_document("pci_stats", self._scarcity, np.int64, key="scarcity")

    @staticmethod
    def _scarcity(pools: Pools | None) -> int:
        devices = sum(pool.count for pool in pools.pools) if pools else 0
        return 100 - min(devices, _MANY_DEVICES)
