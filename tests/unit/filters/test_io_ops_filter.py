"""(operations on the host, option) -> may take one more or not."""

from __future__ import annotations

from scheduler.filters.io_ops_filter import AggregateIoOpsFilter, IoOpsFilter
from tests.unit.filters.counting import Counting, CountingTests


class TestIoOpsFilter(CountingTests):
    counting = Counting(
        IoOpsFilter,
        AggregateIoOpsFilter,
        column="num_io_ops",
        option="max_io_ops_per_host",
        default=8,
        reason="io_ops.busy",
    )
