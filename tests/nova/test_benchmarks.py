"""The workloads that compare with Nova, at a size of seconds."""

import pytest

from benchmarks import workload
from tests.unit.benchmarks.test_workloads import leaks

NAMES = [name for name in workload.names() if workload.load(name).needs_nova]


@pytest.mark.parametrize("name", NAMES)
def test_a_workload_runs(name, nova_python):
    leaks(name)
