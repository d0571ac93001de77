"""(service record, last heartbeat) -> may take servers or not."""

from __future__ import annotations

import pytest

from scheduler.filters.compute_filter import ComputeFilter
from tests.builders import NOW, a_conf, a_host, a_request, verdict

DISABLED, DOWN = ["compute.disabled"], ["compute.down"]


@pytest.mark.parametrize(
    ("service", "age", "reasons"),
    [
        pytest.param({}, 0, [], id="just heard from"),
        pytest.param({}, 60, [], id="as long ago as allowed"),
        pytest.param({}, 60.5, DOWN, id="too long ago"),
        pytest.param({}, -60, [], id="clock a little ahead"),
        pytest.param({}, -62, DOWN, id="clock too far ahead"),
        pytest.param({}, float("inf"), DOWN, id="never heard from"),
        pytest.param({"disabled": True}, 0, DISABLED, id="disabled"),
        pytest.param({"disabled": True}, 99, DISABLED, id="disabled comes before down"),
        pytest.param({"disabled": None, "forced_down": None}, 0, [], id="null flags"),
        pytest.param({"forced_down": True}, 0, DOWN, id="forced down"),
    ],
)
def test_the_service_decides(service, age, reasons):
    host = a_host(service=service, last_seen=NOW - age)

    assert verdict(ComputeFilter(a_conf()), host, a_request()) == reasons
