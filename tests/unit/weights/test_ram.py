"""(free memory of the hosts, options) -> weights and order."""

from __future__ import annotations

import pytest

from scheduler.weights.ram import RAMWeigher
from tests.builders import a_conf, a_fleet, a_request, candidates, contributions


@pytest.mark.parametrize(
    ("values", "options", "weights", "order"),
    [
        pytest.param([1024, 2048, 8192], {}, [0.125, 0.25, 1.0], "321", id="three hosts"),
        pytest.param([1024, 2048], {}, [0.5, 1.0], "21", id="two of them alone"),
        pytest.param([-512, -1024], {}, [0.0, 0.0], "12", id="less than nothing is nothing"),
        pytest.param([-512, 1024], {}, [0.0, 1.0], "21", id="less than nothing and something"),
        pytest.param([4096, 4096], {}, [1.0, 1.0], "12", id="equal"),
        pytest.param([0, 0], {}, [0.0, 0.0], "12", id="equally nothing"),
        pytest.param(
            *([1024, 2048, 8192], {"ram_weight_multiplier": -1.0}, [-0.125, -0.25, -1.0], "123"),
            id="stacked",
        ),
        pytest.param([1, 2], {"ram_weight_multiplier": 0.0}, [0.0, 0.0], "12", id="off"),
        pytest.param([5, 5, 9, 9], {}, [5 / 9, 5 / 9, 1.0, 1.0], "3412", id="ties keep order"),
    ],
)
def test_hosts_are_weighed(values, options, weights, order):
    hosts = candidates(a_fleet(*[{"free_ram_mb": value} for value in values]))

    found, names = contributions(RAMWeigher(a_conf(**options)), hosts, a_request())

    assert found == pytest.approx(weights)
    assert names == [f"h{number}" for number in order]
