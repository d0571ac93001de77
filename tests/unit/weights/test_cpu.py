"""(processors of the hosts, options) -> weights and order."""

from __future__ import annotations

import pytest

from scheduler.weights.cpu import CPUWeigher
from tests.builders import a_conf, a_fleet, a_request, candidates, contributions


@pytest.mark.parametrize(
    ("values", "options", "weights", "order"),
    [
        pytest.param(
            [(16, 16.0, 20), (8, 4.0, 4), (4, 1.0, 8)], {}, [1.0, 0.118644, 0.0], "123", id="three"
        ),
        pytest.param([(4, 1.0, 8), (4, 1.0, 9)], {}, [0.0, 0.0], "12", id="less than nothing"),
        pytest.param([(4, 2.0, 0), (4, 1.0, 0)], {}, [1.0, 0.5], "12", id="overcommit counts"),
        pytest.param(
            [(4, 1.0, 0), (4, 1.0, 2)], {"cpu_weight_multiplier": -2.0}, [-2.0, -1.0], "21", id="-"
        ),
    ],
)
def test_hosts_are_weighed(values, options, weights, order):
    names_of = ("vcpus_total", "cpu_allocation_ratio", "vcpus_used")
    fleet = a_fleet(*[dict(zip(names_of, value, strict=True)) for value in values])

    found, names = contributions(CPUWeigher(a_conf(**options)), candidates(fleet), a_request())

    assert found == pytest.approx(weights, abs=1e-6)
    assert names == [f"h{number}" for number in order]
