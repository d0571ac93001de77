"""HTTP as it is in the world: connections that are closed, servers that are busy, tokens, TLS."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from scheduler import errors
from tests.functional.placement_fleet import MB, Worker, a_name
from tests.functional.test_placement_claims import database, fleet, three_hosts
from tests.servers.placement_proxy import PASSWORD, Keystone, PlacementProxy

__all__ = ["database", "fleet"]

#: Requests that fill the fleet, and callers at once.
SLOTS, CALLERS = 12, 4
#: Less than [placement] timeout by far: nobody has waited for a connection that nobody serves.
SOON_SECONDS = 40.0


def fills_the_fleet(fleet, settings, workers=2):
    """Let callers fill the fleet to the last slot: each gets an answer, then there is no more."""
    three_hosts(fleet)
    several = [Worker(fleet.database, settings) for _ in range(workers)]
    names = [a_name() for _ in range(SLOTS)]

    def ask(number):
        return several[number % workers].hosts(f"req-{number}", [names[number]], MB // 4)

    began = time.monotonic()
    with ThreadPoolExecutor(CALLERS) as pool:
        answers = list(pool.map(ask, range(SLOTS)))
    assert [fleet.host_of(each) for each in names] == answers
    assert set(fleet.used_mb().values()) == {MB}
    for each in several:
        with pytest.raises(errors.NoValidHost):
            each.hosts("req-last", [a_name()], MB // 4)
    assert time.monotonic() - began < SOON_SECONDS
    for each in names:
        fleet.placement.call("DELETE", f"/allocations/{each}")
    assert set(fleet.used_mb().values()) == {0}


@pytest.mark.parametrize(
    ("protocol", "misbehaves"),
    [
        pytest.param("HTTP/1.0", {}, id="HTTP/1.0"),
        pytest.param("HTTP/1.1", {"loses": 5}, id="cut before the call"),
        pytest.param("HTTP/1.1", {"gives up": 5}, id="504 instead of the answer"),
        pytest.param("HTTP/1.1", {"closes": 1, "busy": 7, "forgets": 5}, id="all else at once"),
    ],
)
def test_calls_that_fail_on_the_way_lose_nothing(fleet, protocol, misbehaves):
    with PlacementProxy(fleet.placement.port, protocol, **misbehaves) as proxy:
        fills_the_fleet(fleet, {**fleet.placement.settings, "endpoint_override": proxy.endpoint})
    assert proxy.seen == set(misbehaves)


def test_kept_connections_may_outnumber_the_processes(fleet):
    with PlacementProxy(fleet.placement.port, processes=2) as proxy:
        settings = {**fleet.placement.settings, "endpoint_override": proxy.endpoint}
        fills_the_fleet(fleet, settings, workers=4)


@pytest.mark.parametrize("is_known", [True, False])
def test_a_private_authority_is_trusted_if_it_is_named(fleet, authority, tmp_path, is_known):
    trusted = authority.file if is_known else authority.stranger
    settings = {**fleet.placement.settings, "cafile": str(trusted)}
    with PlacementProxy(fleet.placement.port, authority=authority, folder=tmp_path) as proxy:
        settings["endpoint_override"] = proxy.endpoint
        if is_known:
            fills_the_fleet(fleet, settings)
        else:
            assert "certificate verify failed" in failure(fleet, settings)


def failure(fleet, settings):
    three_hosts(fleet)
    worker = Worker(fleet.database, settings)
    with pytest.raises(errors.NoValidHost):
        worker.select("req-1", [a_name()])
    return worker.driver.recorder.records[-1].failure


@pytest.mark.parametrize("password", [PASSWORD, "wrong"])
def test_tokens_that_expire_are_replaced(fleet, password):
    settings = {"auth_type": "password", "username": "placement", "password": password}
    settings |= {"project_name": "service", "region_name": "here", "valid_interfaces": ["public"]}
    settings |= {"user_domain_name": "Default", "project_domain_name": "Default"}
    port = fleet.placement.port
    with Keystone(calls=15) as keystone, PlacementProxy(port, keystone=keystone) as proxy:
        keystone.placement, settings["auth_url"] = proxy.endpoint, keystone.url
        if password == PASSWORD:
            fills_the_fleet(fleet, settings)
            assert proxy.seen == {"unauthorized"}
        else:
            assert "Placement is not available" in failure(fleet, settings)
