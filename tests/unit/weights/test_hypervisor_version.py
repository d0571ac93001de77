"""(hypervisor versions of the hosts, options) -> weights and order."""

from __future__ import annotations

import pytest

from scheduler.weights.hypervisor_version import HypervisorVersionWeigher
from tests.builders import a_conf, a_fleet, a_request, candidates, contributions


@pytest.mark.parametrize(
    ("values", "options", "weights", "order"),
    [
        pytest.param([2005000, 6002000, 0], {}, [0.334055, 1.0, 0.0], "213", id="newer is better"),
        pytest.param(
            [2005000, 6002000],
            {"hypervisor_version_weight_multiplier": -1.0},
            *([0.0, -1.0], "12"),
            id="older is better",
        ),
    ],
)
def test_hosts_are_weighed(values, options, weights, order):
    hosts = candidates(a_fleet(*[{"hypervisor_version": value} for value in values]))

    found, names = contributions(HypervisorVersionWeigher(a_conf(**options)), hosts, a_request())

    assert found == pytest.approx(weights, abs=1e-6)
    assert names == [f"h{number}" for number in order]
