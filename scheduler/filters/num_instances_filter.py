"""NumInstancesFilter, AggregateNumInstancesFilter: few servers.  Reference page filters, 6.10."""

from scheduler.filters.base import Reason
from scheduler.filters.bounds import AggregateMaximumFilter, MaximumFilter, for_aggregates


class NumInstancesFilter(MaximumFilter):
    """Passes hosts with fewer than ``max_instances_per_host`` servers."""

    reasons = (Reason("num_instances.full", "the host runs as many servers as it may"),)
    column = "num_instances"
    maximum_option = "max_instances_per_host"


class AggregateNumInstancesFilter(AggregateMaximumFilter, NumInstancesFilter):
    """The same, with the ``max_instances_per_host`` of the host's aggregates before the option."""

    reasons = for_aggregates(NumInstancesFilter.reasons)
