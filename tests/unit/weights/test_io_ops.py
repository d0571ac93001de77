"""(operations on the hosts, options) -> weights and order."""

from __future__ import annotations

import pytest

from scheduler.weights.io_ops import IoOpsWeigher
from tests.builders import a_conf, a_fleet, a_request, candidates, contributions


@pytest.mark.parametrize(
    ("values", "options", "weights", "order"),
    [
        pytest.param([0, 1, 4], {}, [0.0, -0.25, -1.0], "123", id="avoided"),
        pytest.param([4, 1, 0], {}, [-1.0, -0.25, 0.0], "321", id="avoided, other order"),
        pytest.param([0, 0], {}, [0.0, 0.0], "12", id="all idle"),
        pytest.param(
            [0, 1, 4], {"io_ops_weight_multiplier": 2.0}, [0.0, 0.5, 2.0], "321", id="sought"
        ),
    ],
)
def test_hosts_are_weighed(values, options, weights, order):
    hosts = candidates(a_fleet(*[{"num_io_ops": value} for value in values]))

    found, names = contributions(IoOpsWeigher(a_conf(**options)), hosts, a_request())

    assert found == pytest.approx(weights)
    assert names == [f"h{number}" for number in order]
