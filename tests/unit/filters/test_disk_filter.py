"""(host's disk, disk asked for) -> fits or not, and the limit."""

from __future__ import annotations

import math

import pytest

from scheduler.filters.disk_filter import AggregateDiskFilter, DiskFilter
from tests.builders import a_conf, a_host, a_request, verdict

PHYSICAL, INSUFFICIENT = ["disk.physical"], ["disk.insufficient"]


@pytest.mark.parametrize(
    ("columns", "flavor", "reasons"),
    [
        pytest.param({}, {"root_gb": 100}, [], id="all of it"),
        pytest.param(
            {"disk_allocation_ratio": 10.0}, {"root_gb": 100, "swap": 1}, PHYSICAL, id="swap counts"
        ),
        pytest.param(
            {"disk_allocation_ratio": 2.0, "free_disk_mb": 0},
            {"root_gb": 50, "ephemeral_gb": 50},
            [],
            id="exactly the overcommit left",
        ),
        pytest.param(
            {"disk_allocation_ratio": 2.0, "free_disk_mb": -1},
            {"root_gb": 50, "ephemeral_gb": 50},
            INSUFFICIENT,
            id="one less than that",
        ),
        pytest.param({"free_disk_mb": 1024}, {"root_gb": 1}, [], id="last one"),
        pytest.param({"free_disk_mb": 1023}, {"root_gb": 1}, INSUFFICIENT, id="just too little"),
        pytest.param({"free_disk_mb": 0}, {"root_gb": 0}, [], id="nothing wanted"),
        pytest.param({"free_disk_mb": -1}, {"root_gb": 0}, INSUFFICIENT, id="over"),
        pytest.param({"disk_allocation_ratio": 0.0}, {}, INSUFFICIENT, id="no ratio"),
        pytest.param({"disk_allocation_ratio": math.nan}, {}, INSUFFICIENT, id="ratio no number"),
        pytest.param({"total_usable_disk_gb": 0}, {}, PHYSICAL, id="not reported"),
    ],
)
def test_disk_decides(columns, flavor, reasons):
    request = a_request(flavor=flavor)

    assert verdict(DiskFilter(a_conf()), a_host(**columns), request) == reasons


def test_a_server_on_a_volume_needs_its_root_disk_too():
    request = a_request(flavor={"root_gb": 101}, is_bfv=True)

    assert verdict(DiskFilter(a_conf()), a_host(), request) == PHYSICAL


def test_the_limit_is_the_overcommitted_total():
    limits = DiskFilter(a_conf()).limits(a_host(disk_allocation_ratio=2.0), a_request())

    assert limits == {"disk_gb": 200.0}
    assert isinstance(limits["disk_gb"], float)


@pytest.mark.parametrize(
    ("metadata", "limit", "reasons"),
    [
        pytest.param([], 100.0, ["aggregate_disk.insufficient"], id="the host's own ratio"),
        pytest.param([{"disk_allocation_ratio": "2"}], 200.0, [], id="an aggregate's"),
        pytest.param(
            [{"disk_allocation_ratio": "2"}, {"disk_allocation_ratio": "1.1"}],
            *(110.00000000000001, ["aggregate_disk.insufficient"]),
            id="the smallest",
        ),
    ],
)
def test_aggregates_set_the_ratio(metadata, limit, reasons):
    aggregate_disk = AggregateDiskFilter(a_conf())
    host = a_host(free_disk_mb=0, aggregates=metadata)
    request = a_request(flavor={"root_gb": 50, "ephemeral_gb": 50})

    assert verdict(aggregate_disk, host, request) == reasons
    assert aggregate_disk.limits(host, request) == {"disk_gb": limit}


def test_aggregates_do_not_lift_the_physical_size():
    host = a_host(aggregates=[{"disk_allocation_ratio": "10"}])
    request = a_request(flavor={"root_gb": 100, "swap": 1})

    assert verdict(AggregateDiskFilter(a_conf()), host, request) == ["aggregate_disk.physical"]
