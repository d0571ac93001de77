"""(failed builds of the hosts, options) -> weights and order."""

from __future__ import annotations

import pytest

from scheduler.weights.compute import BuildFailureWeigher
from tests.builders import a_conf, a_fleet, a_request, candidates, contributions

KEY = "build_failure_weight_multiplier"


@pytest.mark.parametrize(
    ("values", "options", "weights", "order"),
    [
        pytest.param([0, 1, 4], {}, [0.0, -250000.0, -1000000.0], "123", id="avoided"),
        pytest.param([3, 0], {}, [-1000000.0, 0.0], "21", id="avoided, other order"),
        pytest.param([2, 2], {}, [0.0, 0.0], "12", id="equal"),
        pytest.param([1, 0], {KEY: 0.0}, [0.0, 0.0], "12", id="off"),
    ],
)
def test_hosts_are_weighed(values, options, weights, order):
    hosts = candidates(a_fleet(*[{"failed_builds": value} for value in values]))

    found, names = contributions(BuildFailureWeigher(a_conf(**options)), hosts, a_request())

    assert found == pytest.approx(weights)
    assert names == [f"h{number}" for number in order]


def test_the_smallest_of_the_aggregates_is_the_penalty():
    first = {"failed_builds": 2, "aggregates": [{KEY: "10"}, {KEY: "20"}]}
    hosts = candidates(a_fleet(first, {"failed_builds": 1}, {"failed_builds": 0}))

    found, names = contributions(BuildFailureWeigher(a_conf()), hosts, a_request())

    assert found == pytest.approx([-10.0, -500000.0, 0.0])
    assert names == ["h3", "h1", "h2"]
