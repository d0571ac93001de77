"""PCIWeigher: hosts with free PCI devices are kept for the servers that need them."""

from typing import Any

import numpy as np

from scheduler.hosts.candidates import Candidates
from scheduler.pci import Pools
from scheduler.weights.base import HostWeigher

#: From this number on more devices make no difference.
_MANY = 99


class PCIWeigher(HostWeigher):
    """The fewer free devices, the better; what the request needs is the filter's business."""

    multiplier_option = "pci_weight_multiplier"

    def raw(self, hosts: Candidates, request: Any) -> np.ndarray:
        """From 100 without free devices to 1 with 99 or more."""
        return hosts.per_document("pci_stats", _scarcity, np.int64, key="scarcity")


def _scarcity(pools: Pools | None) -> int:
    devices = sum(pool.count for pool in pools.pools) if pools else 0
    return 100 - min(devices, _MANY)
