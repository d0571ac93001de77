"""(metrics of the host, option) -> all there or not."""

from __future__ import annotations

import pytest

from scheduler.filters.metrics_filter import MetricsFilter
from tests.builders import a_conf, a_host, a_request, verdict

MISSING = ["metrics.missing"]
CPU = {"name": "cpu.percent", "value": 0.5, "timestamp": "2026-01-01T00:00:00", "source": "x"}
FREQUENCY = {**CPU, "name": "cpu.frequency", "value": 2600}


@pytest.mark.parametrize(
    ("metrics", "setting", "reasons"),
    [
        pytest.param([], [], [], id="none wanted"),
        pytest.param(None, [], [], id="none wanted, none known"),
        pytest.param([CPU], ["cpu.percent=1"], [], id="there"),
        pytest.param([CPU, FREQUENCY], ["cpu.frequency=1", "cpu.percent=2"], [], id="both"),
        pytest.param([CPU], ["cpu.frequency=1", "cpu.percent=2"], MISSING, id="one of two"),
        pytest.param([], ["cpu.percent=1"], MISSING, id="no metrics"),
        pytest.param(None, ["cpu.percent=1"], MISSING, id="no document"),
        pytest.param("x", ["cpu.percent=1"], MISSING, id="a document that is none"),
        pytest.param([CPU], ["cpu.percent =1"], MISSING, id="a blank belongs to the name"),
        pytest.param([CPU], ["cpu.frequency"], [], id="a bad item does not count"),
    ],
)
def test_the_host_has_the_metrics(metrics, setting, reasons):
    conf = a_conf()
    conf.set_override("weight_setting", setting, group="metrics")

    assert verdict(MetricsFilter(conf), a_host(metrics=metrics), a_request()) == reasons


def test_an_item_that_is_no_ratio_is_told_with_its_option(caplog):
    conf = a_conf()
    conf.set_override("weight_setting", ["cpu.percent"], group="metrics")

    MetricsFilter(conf)

    assert caplog.messages == [
        "Ignoring the invalid elements of the option metrics.weight_setting: cpu.percent"
    ]
