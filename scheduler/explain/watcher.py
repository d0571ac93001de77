"""Looking on while a decision is made, closer than its record does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler.hosts.candidates import Candidates
from scheduler.hosts.host_state import HostState
from scheduler.weights.weighing import Weighed


class Watcher:
    """Told of every step, in order; this one looks away.  It may change nothing."""

    def filtered(self, index: int, name: str, hosts: Candidates) -> None:
        """Filter *name* left *hosts* for instance number *index*."""

    def weighed(
        self, index: int, weighed: Weighed, limits_of: Callable[[HostState], dict[str, Any]]
    ) -> None:
        """The hosts left for instance number *index*, best first; *limits_of* gives their limits.

        Where alternates are wanted for several instances, the last number comes a second time.
        """
