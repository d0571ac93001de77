"""IoOpsWeigher: operations in progress; avoids busy hosts by its negative default multiplier.

Reference page scheduling, section 7.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.hosts.candidates import Candidates
from scheduler.weights.base import HostWeigher


class IoOpsWeigher(HostWeigher):
    """Number of servers in the middle of an operation."""

    minval = 0
    multiplier_option = "io_ops_weight_multiplier"

    def raw(self, hosts: Candidates, request: Any) -> np.ndarray:
        """The number of operations."""
        del request
        return hosts.num_io_ops
