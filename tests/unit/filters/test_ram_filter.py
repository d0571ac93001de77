"""(host's memory, memory asked for) -> fits or not, and the limit."""

from __future__ import annotations

import math

import pytest

from scheduler.filters.ram_filter import AggregateRamFilter, RamFilter
from tests.builders import a_conf, a_host, a_request, verdict

PHYSICAL, INSUFFICIENT = ["ram.physical"], ["ram.insufficient"]
AGGREGATE = ["aggregate_ram.insufficient"]


@pytest.mark.parametrize(
    ("columns", "memory_mb", "reasons"),
    [
        pytest.param({}, 4096, [], id="all of it"),
        pytest.param({"ram_allocation_ratio": 10.0}, 4097, PHYSICAL, id="more than there is"),
        pytest.param({"free_ram_mb": -1536}, 512, [], id="exactly the overcommit left"),
        pytest.param({"free_ram_mb": -1536}, 513, INSUFFICIENT, id="one more than that"),
        pytest.param({"free_ram_mb": 0, "ram_allocation_ratio": 1.0}, 0, [], id="nothing wanted"),
        pytest.param({"free_ram_mb": -1, "ram_allocation_ratio": 1.0}, 0, INSUFFICIENT, id="over"),
        pytest.param({"free_ram_mb": 5000}, 4096, [], id="more free than total"),
        pytest.param({"ram_allocation_ratio": 0.5}, 2048, [], id="kept back"),
        pytest.param({"ram_allocation_ratio": 0.5}, 2049, INSUFFICIENT, id="kept back, too much"),
        pytest.param({"ram_allocation_ratio": 0.0}, 1, INSUFFICIENT, id="no ratio"),
        pytest.param({"ram_allocation_ratio": math.nan}, 1, INSUFFICIENT, id="ratio not a number"),
        pytest.param({"total_usable_ram_mb": 0, "free_ram_mb": 0}, 1, PHYSICAL, id="not reported"),
    ],
)
def test_memory_decides(columns, memory_mb, reasons):
    request = a_request(flavor={"memory_mb": memory_mb})

    assert verdict(RamFilter(a_conf()), a_host(**columns), request) == reasons


def test_the_limit_is_the_overcommitted_total():
    limits = RamFilter(a_conf()).limits(a_host(free_ram_mb=-1536), a_request())

    assert limits == {"memory_mb": 6144.0}
    assert isinstance(limits["memory_mb"], float)


@pytest.mark.parametrize(
    ("metadata", "limit", "reasons"),
    [
        pytest.param([], 6144.0, [], id="the host's own ratio"),
        pytest.param([{"ram_allocation_ratio": "0.5"}], 2048.0, AGGREGATE, id="an aggregate's"),
        pytest.param(
            [{"ram_allocation_ratio": "10.0"}, {"ram_allocation_ratio": "9.0"}],
            *(36864.0, []),
            id="the smallest, as numbers",
        ),
        pytest.param(
            [{"ram_allocation_ratio": "0.5"}, {"ram_allocation_ratio": "x"}],
            *(6144.0, []),
            id="one bad value spoils all",
        ),
        pytest.param([{"ram_allocation_ratio": "0"}], 0.0, AGGREGATE, id="zero is a value"),
        pytest.param([{"cpu_allocation_ratio": "0.5"}], 6144.0, [], id="another ratio"),
    ],
)
def test_aggregates_set_the_ratio(metadata, limit, reasons):
    aggregate_ram, host = AggregateRamFilter(a_conf()), a_host(aggregates=metadata)

    assert verdict(aggregate_ram, host, a_request(flavor={"memory_mb": 4096})) == reasons
    assert aggregate_ram.limits(host, a_request()) == {"memory_mb": limit}


def test_aggregates_do_not_lift_the_physical_size():
    host = a_host(aggregates=[{"ram_allocation_ratio": "10"}])

    found = verdict(AggregateRamFilter(a_conf()), host, a_request(flavor={"memory_mb": 4097}))

    assert found == ["aggregate_ram.physical"]
