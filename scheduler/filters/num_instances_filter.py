"""NumInstancesFilter: not too many servers on the host.  Reference page filters, section 6.10."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.hosts.candidates import Candidates

FULL = Reason("num_instances.full", "the host runs as many servers as it may")


class NumInstancesFilter(HostFilter):
    """Passes hosts with fewer than ``max_instances_per_host`` servers."""

    reasons = (FULL,)

    def __init__(self, conf: Any) -> None:
        super().__init__(conf)
        self.max_instances = conf.filter_scheduler.max_instances_per_host

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Below the maximum before this server is added."""
        del request
        yield FULL, hosts.num_instances < self.max_instances
