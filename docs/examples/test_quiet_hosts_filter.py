"""(builds on the host, builds that it was asked for before) -> why it is refused."""

from __future__ import annotations

import pytest
from quiet_hosts_filter import QuietHostsFilter

from scheduler import errors
from scheduler.testing import Decider, a_host, a_request, verdict


@pytest.mark.parametrize(
    ("builds", "reasons"),
    [
        pytest.param(0, [], id="idle"),
        pytest.param(2, [], id="room for one"),
        pytest.param(3, ["quiet_hosts.busy"], id="busy"),
        pytest.param(50, ["quiet_hosts.busy"], id="very busy"),
    ],
)
def test_verdict(builds: int, reasons: list[str]) -> None:
    host = a_host(num_io_ops=builds)
    assert verdict(QuietHostsFilter(), host, a_request()) == reasons


def test_the_last_place_is_given_once() -> None:
    host = a_host(num_io_ops=2)
    host.consume_from_request(a_request())
    assert verdict(QuietHostsFilter(), host, a_request()) == ["quiet_hosts.busy"]


def test_servers_go_where_it_is_quiet() -> None:
    scheduler = Decider({"num_io_ops": 5}, {"num_io_ops": 2}, filters=[QuietHostsFilter])
    assert scheduler.decide(a_request()) == ["h2"]
    with pytest.raises(errors.NoValidHost):
        scheduler.decide(a_request())
    assert scheduler.explain()["filters"][0]["removed"] == {"quiet_hosts.busy": 2}
