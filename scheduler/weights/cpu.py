"""CPUWeigher: free processors; spreads, or stacks with a negative multiplier."""

from typing import Any

import numpy as np

from scheduler.hosts.candidates import Candidates
from scheduler.weights.base import HostWeigher


class CPUWeigher(HostWeigher):
    """The host's free processors under its overcommit; less than nothing counts as none."""

    minval = 0
    multiplier_option = "cpu_weight_multiplier"

    def raw(self, hosts: Candidates, request: Any) -> np.ndarray:
        return hosts.vcpus_total * hosts.cpu_allocation_ratio - hosts.vcpus_used
