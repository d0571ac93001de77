"""(metrics of the hosts, options) -> the request fails, or weights that no recording shows."""

import pytest

from scheduler import errors
from scheduler.weights.metrics import MetricsWeigher
from tests.builders import a_conf, a_fleet, a_request, candidates

FREQUENCY, IDLE = "cpu.frequency", "cpu.idle.time"


def measured(**values):
    """Metrics by the last part of their name."""
    names = {"frequency": FREQUENCY, "time": IDLE}
    common = {"timestamp": "2026-01-01T00:00:00", "source": "x"}
    return [{"name": names[name], "value": value, **common} for name, value in values.items()]


def weigher(setting, **options):
    of_metrics = {f"metrics__{name}": value for name, value in options.items()}
    return MetricsWeigher(a_conf(metrics__weight_setting=setting, **of_metrics))


BOTH = [f"{FREQUENCY}=1", f"{IDLE}=-2.5"]
FULL = measured(frequency=512, time=1)


@pytest.mark.parametrize("document", [None, [], "x", measured(frequency=1)])
def test_a_required_metric_that_is_missing_fails_the_request(document):
    hosts = candidates(a_fleet({"metrics": FULL}, {"metrics": document}))

    with pytest.raises(errors.ComputeHostMetricNotFound) as caught:
        weigher(BOTH).raw(hosts, a_request())
    name = FREQUENCY if document != measured(frequency=1) else IDLE
    assert str(caught.value) == f"Metric {name} could not be found on the compute host node h2.n2."


def test_a_metric_of_several_values_fails_the_request():
    bandwidth = {"name": "numa.membw.current", "numa_membw_values": {"0": 10, "1": 43}}
    common = {"timestamp": "2026-01-01T00:00:00", "source": "x"}
    hosts = candidates(a_fleet({"metrics": [{**bandwidth, **common}]}, {}))

    with pytest.raises(errors.ComputeHostMetricNotFound, match=r"h1\.n1"):
        weigher(["numa.membw.current=0"], required=False).raw(hosts, a_request())


def test_an_aggregate_that_switches_off_needs_no_metric():
    off = {"metrics": [], "aggregates": [{"metrics_weight_multiplier": "0"}]}
    hosts = candidates(a_fleet(off, {"metrics": []}, {"metrics": FULL}))
    metrics = weigher(BOTH, required=False)

    assert metrics.raw(hosts, a_request()).tolist() == [0.0, -10000.0, 509.5]
    switched_off = weigher(BOTH, required=False, weight_multiplier=0.0)
    assert switched_off.raw(hosts.take([1, 2]), a_request()).tolist() == [0.0, 509.5]


def test_an_item_that_is_no_ratio_is_told_with_its_option(caplog):
    weigher(["cpu.percent", f"{FREQUENCY}=1"])

    assert caplog.messages == [
        "Ignoring the invalid elements of the option metrics.weight_setting: cpu.percent"
    ]
