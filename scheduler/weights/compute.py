"""BuildFailureWeigher: avoids hosts whose latest builds failed."""

import numpy as np

from scheduler.hosts.candidates import Candidates
from scheduler.weights.base import ColumnWeigher


class BuildFailureWeigher(ColumnWeigher):
    """Builds that failed on the host since the last one that did not; fewer are better."""

    multiplier_option = "build_failure_weight_multiplier"
    column = "failed_builds"

    def multipliers(self, hosts: Candidates) -> np.ndarray | float:
        return -super().multipliers(hosts)
