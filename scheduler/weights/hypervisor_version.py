"""HypervisorVersionWeigher: newer hypervisors first, so that servers can move on from there.

Reference page scheduling, section 7.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.hosts.candidates import Candidates
from scheduler.weights.base import HostWeigher


class HypervisorVersionWeigher(HostWeigher):
    """The version of the host's hypervisor; one that is not known is the oldest."""

    multiplier_option = "hypervisor_version_weight_multiplier"

    def raw(self, hosts: Candidates, request: Any) -> np.ndarray:
        """The version as a number, e.g. 2005001 for 2.5.1."""
        del request
        return hosts.hypervisor_version
