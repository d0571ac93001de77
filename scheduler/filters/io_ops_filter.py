"""IoOpsFilter, AggregateIoOpsFilter: the host is not busy.  Reference page filters, 6.9."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.hosts.candidates import Candidates

BUSY = Reason("io_ops.busy", "too many servers are in the middle of an operation")


class IoOpsFilter(HostFilter):
    """Passes hosts with fewer than ``max_io_ops_per_host`` operations."""

    reasons = (BUSY,)

    def __init__(self, conf: Any) -> None:
        super().__init__(conf)
        self.max_io_ops = conf.filter_scheduler.max_io_ops_per_host

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Below the maximum before this server is added."""
        del request
        [reason] = self.reasons
        yield reason, hosts.num_io_ops < self.maximum(hosts)

    def maximum(self, hosts: Candidates) -> np.ndarray | float:
        """The maximum of all *hosts*, or one per host."""
        del hosts
        return self.max_io_ops


class AggregateIoOpsFilter(IoOpsFilter):
    """The same, with the ``max_io_ops_per_host`` of the host's aggregates before the option."""

    reasons = (Reason("aggregate_io_ops.busy", BUSY.text),)

    def maximum(self, hosts: Candidates) -> np.ndarray | float:
        """The smallest maximum that an aggregate of the host names, else the option's."""
        key = "max_io_ops_per_host"
        return hosts.overridden(key, int, super().maximum(hosts))
