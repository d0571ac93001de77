"""RAMWeigher: free memory; spreads, or stacks with a negative multiplier.

Reference page scheduling, section 7.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.hosts.candidates import Candidates
from scheduler.weights.base import HostWeigher


class RAMWeigher(HostWeigher):
    """The host's free memory; less than nothing counts as none."""

    minval = 0
    multiplier_option = "ram_weight_multiplier"

    def raw(self, hosts: Candidates, request: Any) -> np.ndarray:
        """Free memory in MB, without overcommit."""
        del request
        return hosts.free_ram_mb
