"""Filters by what goes on a host already.  Reference page filters, sections 6.9 and 6.10."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.hosts import aggregate_metadata
from scheduler.hosts.candidates import Candidates

BUSY = "too many servers are in the middle of an operation"
FULL = "the host runs as many servers as it may"


class CountFilter(HostFilter):
    """Base of the filters that pass hosts with fewer of something than an option says."""

    #: The column with the numbers, and the option of ``[filter_scheduler]``.
    column: ClassVar[str]
    maximum_option: ClassVar[str]

    def __init__(self, conf: Any) -> None:
        super().__init__(conf)
        self.configured_maximum = conf.filter_scheduler[self.maximum_option]

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Below the maximum before this server is added."""
        del request
        yield self.reasons[0], getattr(hosts, self.column) < self.maximum(hosts)

    def maximum(self, hosts: Candidates) -> np.ndarray | float:
        """The maximum of all *hosts*, or one per host."""
        del hosts
        maximum: float = self.configured_maximum
        return maximum


class AggregateCountFilter(CountFilter):
    """Base of those in which the host's aggregates go before the option."""

    def maximum(self, hosts: Candidates) -> np.ndarray | float:
        """The smallest maximum that an aggregate of the host names, else the option's."""
        return aggregate_metadata.overridden(
            hosts, self.maximum_option, int, self.configured_maximum
        )


class IoOpsFilter(CountFilter):
    """Passes hosts with fewer than ``max_io_ops_per_host`` operations."""

    reasons = (Reason("io_ops.busy", BUSY),)
    column = "num_io_ops"
    maximum_option = "max_io_ops_per_host"


class AggregateIoOpsFilter(AggregateCountFilter, IoOpsFilter):
    """The same, with the ``max_io_ops_per_host`` of the host's aggregates before the option."""

    reasons = (Reason("aggregate_io_ops.busy", BUSY),)


class NumInstancesFilter(CountFilter):
    """Passes hosts with fewer than ``max_instances_per_host`` servers."""

    reasons = (Reason("num_instances.full", FULL),)
    column = "num_instances"
    maximum_option = "max_instances_per_host"


class AggregateNumInstancesFilter(AggregateCountFilter, NumInstancesFilter):
    """The same, with the ``max_instances_per_host`` of the host's aggregates before the option."""

    reasons = (Reason("aggregate_num_instances.full", FULL),)
