"""(servers on the host, option) -> may take one more or not."""

from __future__ import annotations

from scheduler.filters.num_instances_filter import AggregateNumInstancesFilter, NumInstancesFilter
from tests.unit.filters.counting import Counting, CountingTests


class TestNumInstancesFilter(CountingTests):
    counting = Counting(
        NumInstancesFilter,
        AggregateNumInstancesFilter,
        column="num_instances",
        option="max_instances_per_host",
        default=50,
        reason="num_instances.full",
    )
