"""IoOpsFilter: the host is not busy with operations.  Reference page filters, section 6.9."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
        yield BUSY, hosts.num_io_ops < self.max_io_ops
