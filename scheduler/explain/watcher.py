"""Looking on while a decision is made, closer than its record does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from scheduler.hosts.candidates import Candidates
from scheduler.hosts.host_state import HostState
from scheduler.weights.weighing import Weighed


class Watcher:
    """Told of every step, in order; this one looks away.  It may change nothing."""

    def filtered(self, index: int, name: str, hosts: Candidates) -> None:
        """Filter *name* left *hosts* for instance number *index*."""

    def passed(
        self, index: int, hosts: Candidates, limits_of: Callable[[HostState], dict[str, Any]]
    ) -> None:
        """*hosts* are left for instance number *index*; *limits_of* gives the limits of one.

        Where alternates are wanted for several instances, the last number comes a second time.
        """

    def weighed(self, index: int, weighed: Weighed, claimable: np.ndarray) -> None:
        """The same hosts, best first, and in that order which of them may be picked."""

    def drawn_from(self, hosts: Sequence[str]) -> None:
        """The chance driver draws one of *hosts*, which a host may be among more than once."""
