"""IoOpsFilter, AggregateIoOpsFilter: the host is not busy.  Reference page filters, 6.9."""

from scheduler.filters.base import Reason
from scheduler.filters.bounds import AggregateMaximumFilter, MaximumFilter, for_aggregates


class IoOpsFilter(MaximumFilter):
    """Passes hosts with fewer than ``max_io_ops_per_host`` operations."""

    reasons = (Reason("io_ops.busy", "too many servers are in the middle of an operation"),)
    column = "num_io_ops"
    maximum_option = "max_io_ops_per_host"


class AggregateIoOpsFilter(AggregateMaximumFilter, IoOpsFilter):
    """The same, with the ``max_io_ops_per_host`` of the host's aggregates before the option."""

    reasons = for_aggregates(IoOpsFilter.reasons)
