"""The workloads that need servers, at a size of seconds: everything in them answers, and ends."""

from __future__ import annotations

import math

import pytest

from benchmarks import held, runner, workload
from tests.servers import mariadb, rabbitmq
from tests.servers.fixtures import require


def needs_servers(name: str) -> bool:
    tiny = workload.load(name).at_tiny_size()
    return tiny.needs_servers and not tiny.needs_nova


@pytest.mark.parametrize("name", [name for name in workload.names() if needs_servers(name)])
def test_a_workload_runs(name: str) -> None:
    require((*rabbitmq.PROGRAMS, *mariadb.PROGRAMS))
    result = runner.run(workload.load(name).at_tiny_size())

    assert {row["what"] for row in result["rows"] if not math.isfinite(row["value"])} == set()
    assert result["leaks"]["processes"] == 0


def is_held_with_servers(name: str) -> bool:
    small = workload.load(name).at_small_size()
    return small is not None and small.needs_servers


@pytest.mark.parametrize("name", [name for name in workload.names() if is_held_with_servers(name)])
def test_nothing_has_collapsed(name: str) -> None:
    require(rabbitmq.PROGRAMS)
    assert held.collapsed_twice(name) == {}
