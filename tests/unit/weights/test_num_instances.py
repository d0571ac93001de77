"""(servers on the hosts, options) -> weights and order."""

from __future__ import annotations

import pytest

from scheduler.weights.num_instances import NumInstancesWeigher
from tests.builders import a_conf, a_fleet, a_request, candidates, contributions

KEY = "num_instances_weight_multiplier"


@pytest.mark.parametrize(
    ("values", "options", "weights", "order"),
    [
        pytest.param([3, 1, 1], {}, [0.0, 0.0, 0.0], "123", id="off"),
        pytest.param([3, 1, 1], {KEY: -1.0}, [-1.0, 0.0, 0.0], "231", id="spread"),
        pytest.param([1, 3, 2], {KEY: 2.0}, [0.0, 2.0, 1.0], "231", id="stacked"),
    ],
)
def test_hosts_are_weighed(values, options, weights, order):
    hosts = candidates(a_fleet(*[{"num_instances": value} for value in values]))

    found, names = contributions(NumInstancesWeigher(a_conf(**options)), hosts, a_request())

    assert found == pytest.approx(weights)
    assert names == [f"h{number}" for number in order]
