"""The workloads that need no servers, at a size of seconds: they run and compare like with like."""

import math

import pytest

from benchmarks import runner, workload

pytestmark = pytest.mark.slow


def needs_more(name):
    tiny = workload.load(name).at_tiny_size()
    return tiny.needs_servers or tiny.needs_nova


def leaks(name, **given):
    """Run it; what it has left behind."""
    result = runner.run(workload.load(name).at_tiny_size(), **given)
    assert {row["what"] for row in result["rows"] if not math.isfinite(row["value"])} == set()
    assert result["leaks"]["processes"] == 0
    found = result["leaks"]
    return found


@pytest.mark.parametrize("name", [name for name in workload.names() if not needs_more(name)])
def test_a_workload_runs(name):
    assert leaks(name)["fds"] <= 0  # what earlier tests have left may go meanwhile


@pytest.mark.parametrize("name", workload.names())
def test_a_workload_is_well_formed(name):
    loaded = workload.load(name)
    assert loaded.rows
    assert loaded.tiny, "a test needs a size of its own"
