"""(free disk of the hosts, options) -> weights and order."""

from __future__ import annotations

import pytest

from scheduler.weights.disk import DiskWeigher
from tests.builders import a_conf, a_fleet, a_request, candidates, contributions


@pytest.mark.parametrize(
    ("values", "options", "weights", "order"),
    [
        pytest.param([102400, 51200, -10240], {}, [1.0, 0.5, 0.0], "123", id="three hosts"),
        pytest.param([-2, -1], {}, [0.0, 0.0], "12", id="less than nothing is nothing"),
        pytest.param([1, 2], {"disk_weight_multiplier": -2.0}, [-1.0, -2.0], "12", id="stacked"),
        pytest.param([1, 2], {"disk_weight_multiplier": 0.0}, [0.0, 0.0], "12", id="off"),
    ],
)
def test_hosts_are_weighed(values, options, weights, order):
    hosts = candidates(a_fleet(*[{"free_disk_mb": value} for value in values]))

    found, names = contributions(DiskWeigher(a_conf(**options)), hosts, a_request())

    assert found == pytest.approx(weights)
    assert names == [f"h{number}" for number in order]
