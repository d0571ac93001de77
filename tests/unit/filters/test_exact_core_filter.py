"""(host's processors, processors asked for) -> exactly those or not, and the limit."""

from __future__ import annotations

import logging

import pytest

from scheduler.filters.exact_core_filter import ExactCoreFilter
from tests.builders import a_conf, a_host, a_request, verdict

DIFFERENT = ["exact_core.different"]


@pytest.mark.parametrize(
    ("columns", "vcpus", "reasons"),
    [
        pytest.param({}, 4, [], id="all"),
        pytest.param({}, 3, DIFFERENT, id="fewer"),
        pytest.param({}, 5, DIFFERENT, id="more"),
        pytest.param({"vcpus_used": 1}, 3, [], id="all that is left"),
        pytest.param({"vcpus_used": 4}, 0, [], id="nothing"),
        pytest.param({"vcpus_total": 0}, 0, ["exact_core.unknown"], id="not reported"),
    ],
)
def test_processors_decide(columns, vcpus, reasons):
    found = verdict(
        ExactCoreFilter(a_conf()), a_host(**columns), a_request(flavor={"vcpus": vcpus})
    )

    assert found == reasons


def test_unknown_processors_are_told(caplog):
    with caplog.at_level(logging.WARNING):
        verdict(ExactCoreFilter(a_conf()), a_host(vcpus_total=0), a_request())

    assert "VCPUs not set; assuming CPU collection broken" in caplog.messages


def test_the_limit_is_what_the_host_has():
    limits = ExactCoreFilter(a_conf()).limits(a_host(vcpus_used=3), a_request())

    assert limits == {"vcpu": 4}
    assert type(limits["vcpu"]) is int
