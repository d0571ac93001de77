"""CrossCellWeigher: a move that may leave its cell stays in it if it can."""

from typing import Any

import numpy as np

from scheduler.hosts.candidates import Candidates
from scheduler.weights.base import HostWeigher


class CrossCellWeigher(HostWeigher):
    """Hosts of the requested cell before the others, where both are allowed."""

    multiplier_option = "cross_cell_move_weight_multiplier"

    def raw(self, hosts: Candidates, request: Any) -> np.ndarray:
        """1 in the cell and -1 outside; 0 for all when the request may not cross cells."""
        wanted = request.requested_destination
        if wanted is None or wanted.cell is None or not wanted.allow_cross_cell_move:
            return hosts.constant(0, np.int64)
        home = wanted.cell.uuid
        return hosts.per_value(
            "cell_uuid", lambda cell: 1 if cell == home else -1, np.int64, key=home
        )
