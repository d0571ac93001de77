"""(metrics of the hosts, options) -> weights, or the request fails."""

import pytest

from scheduler import errors
from scheduler.weights.metrics import MetricsWeigher
from tests.builders import a_conf, a_fleet, a_request, candidates, contributions

FREQUENCY, IDLE, PERCENT = "cpu.frequency", "cpu.idle.time", "cpu.percent"


def measured(**values):
    """Metrics by the last part of their name."""
    names = {"frequency": FREQUENCY, "time": IDLE, "percent": PERCENT}
    common = {"timestamp": "2026-01-01T00:00:00", "source": "x"}
    return [{"name": names[name], "value": value, **common} for name, value in values.items()]


def weigher(setting, **options):
    conf = a_conf()
    conf.set_override("weight_setting", setting, group="metrics")
    for name, value in options.items():
        conf.set_override(name, value, group="metrics")
    return MetricsWeigher(conf)


BOTH = [f"{FREQUENCY}=1", f"{IDLE}=-2.5"]
FULL = [
    measured(frequency=512, time=1),
    measured(frequency=1024, time=2),
    measured(frequency=3072, time=1),
]
LACKING = [FULL[0], measured(frequency=1024), FULL[2]]


OPEN = {"required": False}
PERCENTS = [measured(percent=0.29), measured(percent=1.0)]
TWICE = [[*measured(frequency=1), *measured(frequency=7)], measured(frequency=9)]


@pytest.mark.parametrize(
    ("fleet", "setting", "options", "raw", "weights"),
    [
        (FULL, [], {}, [0.0] * 3, [0.0] * 3),
        # One host lacks one; what is missing may count another value.
        (LACKING, BOTH, OPEN, [509.5, -10000.0, 3069.5], [0.804124, 0.0, 1.0]),
        # A ratio of 0 needs no metric, nor does a multiplier of 0.
        (LACKING, [f"{FREQUENCY}=1", f"{IDLE}=0"], OPEN, [512, 1024, 3072], [0.0, 0.2, 1.0]),
        (LACKING, BOTH, {**OPEN, "weight_multiplier": 0.0}, [509.5, 1024.0, 3069.5], [0.0] * 3),
        # Fractions of percent are cut; the later of two values counts.
        (PERCENTS, [f"{PERCENT}=1"], {}, [28.0, 100.0], [0.0, 1.0]),
        (TWICE, [f"{FREQUENCY}=1"], {}, [7.0, 9.0], [0.0, 1.0]),
    ],
)  # fmt: skip
def test_hosts_are_weighed(fleet, setting, options, raw, weights):
    hosts = candidates(a_fleet(*[{"metrics": each} for each in fleet]))
    metrics = weigher(setting, **options)

    assert metrics.raw(hosts, a_request()).tolist() == raw
    assert contributions(metrics, hosts, a_request())[0] == pytest.approx(weights, abs=1e-6)


@pytest.mark.parametrize("document", [None, [], "x", measured(frequency=1)])
def test_a_required_metric_that_is_missing_fails_the_request(document):
    hosts = candidates(a_fleet({"metrics": FULL[0]}, {"metrics": document}))

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
    hosts = candidates(a_fleet(off, {"metrics": []}, {"metrics": FULL[0]}))
    metrics = weigher(BOTH, required=False)

    assert metrics.raw(hosts, a_request()).tolist() == [0.0, -10000.0, 509.5]


def test_an_item_that_is_no_ratio_is_told_with_its_option(caplog):
    weigher(["cpu.percent", f"{FREQUENCY}=1"])

    assert caplog.messages == [
        "Ignoring the invalid elements of the option metrics.weight_setting: cpu.percent"
    ]
