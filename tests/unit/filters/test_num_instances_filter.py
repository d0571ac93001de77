"""(servers on the host, option) -> may take one more or not."""

from __future__ import annotations

import pytest

from scheduler.filters.num_instances_filter import NumInstancesFilter
from tests.builders import a_conf, a_host, a_request, verdict

FULL = ["num_instances.full"]


@pytest.mark.parametrize(
    ("num_instances", "options", "reasons"),
    [
        pytest.param(49, {}, [], id="one below the default"),
        pytest.param(50, {}, FULL, id="at the default"),
        pytest.param(0, {"max_instances_per_host": 1}, [], id="one allowed"),
        pytest.param(1, {"max_instances_per_host": 1}, FULL, id="one allowed and there"),
        pytest.param(0, {"max_instances_per_host": 0}, FULL, id="none allowed"),
    ],
)
def test_the_maximum_closes_the_host(num_instances, options, reasons):
    servers = NumInstancesFilter(a_conf(**options))

    assert verdict(servers, a_host(num_instances=num_instances), a_request()) == reasons
