"""DiskWeigher: free disk; spreads, or stacks with a negative multiplier.

Reference page scheduling, section 7.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.hosts.candidates import Candidates
from scheduler.weights.base import HostWeigher


class DiskWeigher(HostWeigher):
    """The host's free disk; less than nothing counts as none."""

    minval = 0
    multiplier_option = "disk_weight_multiplier"

    def raw(self, hosts: Candidates, request: Any) -> np.ndarray:
        """Free disk in MB, without overcommit."""
        del request
        return hosts.free_disk_mb
