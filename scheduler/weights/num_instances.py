"""NumInstancesWeigher: servers on the host; stacks, or spreads with a negative multiplier.

Reference page scheduling, section 7.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.hosts.candidates import Candidates
from scheduler.weights.base import HostWeigher


class NumInstancesWeigher(HostWeigher):
    """Number of servers on the host.  Off unless its multiplier is set."""

    multiplier_option = "num_instances_weight_multiplier"

    def raw(self, hosts: Candidates, request: Any) -> np.ndarray:
        """The number of servers."""
        del request
        return hosts.num_instances
