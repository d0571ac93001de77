"""(host's processors, processors asked for) -> fits or not, and the limit."""

from __future__ import annotations

import logging
import math

import pytest

from scheduler.filters.core_filter import AggregateCoreFilter, CoreFilter
from tests.builders import a_conf, a_host, a_request, verdict

PHYSICAL, INSUFFICIENT = ["core.physical"], ["core.insufficient"]


@pytest.mark.parametrize(
    ("columns", "vcpus", "reasons"),
    [
        pytest.param({}, 4, [], id="all of them"),
        pytest.param({}, 5, PHYSICAL, id="more than there are"),
        pytest.param({"vcpus_used": 60}, 4, [], id="exactly the overcommit left"),
        pytest.param({"vcpus_used": 61}, 4, INSUFFICIENT, id="one less than that"),
        pytest.param({"vcpus_used": 99}, 0, INSUFFICIENT, id="nothing wanted, but over"),
        pytest.param({"cpu_allocation_ratio": 0.5, "vcpus_used": 1}, 1, [], id="kept back"),
        pytest.param({"cpu_allocation_ratio": 0.0}, 1, INSUFFICIENT, id="no ratio"),
        pytest.param({"cpu_allocation_ratio": 0.0}, 5, INSUFFICIENT, id="no ratio, too many"),
        pytest.param({"cpu_allocation_ratio": math.nan}, 1, INSUFFICIENT, id="ratio not a number"),
        pytest.param({"vcpus_total": 1, "cpu_allocation_ratio": 1.0}, 2, PHYSICAL, id="one"),
        pytest.param({"vcpus_total": 0}, 1, [], id="not reported"),
        pytest.param({"vcpus_total": 0, "vcpus_used": 9}, 99, [], id="not reported, but used"),
    ],
)
def test_processors_decide(columns, vcpus, reasons):
    request = a_request(flavor={"vcpus": vcpus})

    assert verdict(CoreFilter(a_conf()), a_host(**columns), request) == reasons


@pytest.mark.parametrize(
    ("columns", "limits"),
    [
        ({}, {"vcpu": 64.0}),
        ({"cpu_allocation_ratio": 0.5}, {"vcpu": 2.0}),
        ({"cpu_allocation_ratio": 0.25}, {"vcpu": 1.0}),
        ({"cpu_allocation_ratio": 0.0}, {}),
        ({"vcpus_total": 0}, {}),
    ],
)
def test_the_limit_is_the_overcommitted_total(columns, limits):
    assert CoreFilter(a_conf()).limits(a_host(**columns), a_request()) == limits


def test_missing_processors_are_told(caplog):
    with caplog.at_level(logging.WARNING):
        verdict(CoreFilter(a_conf()), a_host(vcpus_total=0), a_request())

    assert "VCPUs not set; assuming CPU collection broken" in caplog.text


@pytest.mark.parametrize(
    ("metadata", "used", "limits", "reasons"),
    [
        pytest.param([], 4, {"vcpu": 64.0}, [], id="the host's own ratio"),
        pytest.param(
            [{"cpu_allocation_ratio": "1.0"}],
            *(4, {"vcpu": 4.0}, ["aggregate_core.insufficient"]),
            id="an aggregate's",
        ),
        pytest.param(
            [{"cpu_allocation_ratio": "2"}, {"cpu_allocation_ratio": "1.5"}],
            *(4, {"vcpu": 6.0}, []),
            id="the smallest",
        ),
        pytest.param(
            [{"cpu_allocation_ratio": "0"}],
            *(0, {}, ["aggregate_core.insufficient"]),
            id="zero leaves nothing, and no limit",
        ),
        pytest.param([{"cpu_allocation_ratio": ""}], 4, {"vcpu": 64.0}, [], id="no number"),
    ],
)
def test_aggregates_set_the_ratio(metadata, used, limits, reasons):
    aggregate_core = AggregateCoreFilter(a_conf())
    host = a_host(vcpus_used=used, aggregates=metadata)

    assert verdict(aggregate_core, host, a_request(flavor={"vcpus": 2})) == reasons
    assert aggregate_core.limits(host, a_request()) == limits


def test_aggregates_do_not_lift_the_physical_size():
    host = a_host(aggregates=[{"cpu_allocation_ratio": "10"}])

    found = verdict(AggregateCoreFilter(a_conf()), host, a_request(flavor={"vcpus": 5}))

    assert found == ["aggregate_core.physical"]
