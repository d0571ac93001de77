"""(operations on the host, option) -> may take one more or not."""

from __future__ import annotations

import pytest

from scheduler.filters.io_ops_filter import IoOpsFilter
from tests.builders import a_conf, a_host, a_request, verdict

BUSY = ["io_ops.busy"]


@pytest.mark.parametrize(
    ("num_io_ops", "options", "reasons"),
    [
        pytest.param(7, {}, [], id="one below the default"),
        pytest.param(8, {}, BUSY, id="at the default"),
        pytest.param(0, {"max_io_ops_per_host": 1}, [], id="one allowed"),
        pytest.param(1, {"max_io_ops_per_host": 1}, BUSY, id="one allowed and there"),
        pytest.param(0, {"max_io_ops_per_host": 0}, BUSY, id="none allowed"),
        pytest.param(0, {"max_io_ops_per_host": -1}, BUSY, id="fewer than none allowed"),
    ],
)
def test_the_maximum_closes_the_host(num_io_ops, options, reasons):
    io_ops = IoOpsFilter(a_conf(**options))

    assert verdict(io_ops, a_host(num_io_ops=num_io_ops), a_request()) == reasons
