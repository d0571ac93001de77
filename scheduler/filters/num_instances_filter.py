"""NumInstancesFilter, AggregateNumInstancesFilter: not too many servers on the host.

Reference page filters, section 6.10.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

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
        [reason] = self.reasons
        yield reason, hosts.num_instances < self.maximum(hosts)

    def maximum(self, hosts: Candidates) -> np.ndarray | float:
        """The maximum of all *hosts*, or one per host."""
        del hosts
        return self.max_instances


class AggregateNumInstancesFilter(NumInstancesFilter):
    """The same, with the ``max_instances_per_host`` of the host's aggregates before the option."""

    reasons = (Reason("aggregate_num_instances.full", FULL.text),)

    def maximum(self, hosts: Candidates) -> np.ndarray | float:
        """The smallest maximum that an aggregate of the host names, else the option's."""
        key = "max_instances_per_host"
        return hosts.overridden(key, int, super().maximum(hosts))
