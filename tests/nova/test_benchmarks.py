"""The workloads that compare with Nova, at a size of seconds."""

import math

import pytest

from benchmarks import runner, workload

NAMES = [name for name in workload.names() if workload.load(name).needs_nova]


@pytest.mark.parametrize("name", NAMES)
def test_a_workload_runs(name, nova_python):
    result = runner.run(workload.load(name).at_tiny_size())

    assert {row["what"] for row in result["rows"] if not math.isfinite(row["value"])} == set()
    assert result["leaks"]["processes"] == 0
