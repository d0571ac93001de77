"""A person boots, looks at and deletes servers: all programs, a real broker, a real database."""

from __future__ import annotations

import json

import pytest

from tests.world.deployment import CommandFailed, Deployment

TINY = ("--flavor", "m1.tiny", "--image", "cirros")
WAIT = ("--wait", "--timeout", "60")
NEWTON = {"upgrade_levels": {"compute": "newton", "scheduler": "newton"}}


def failed_boot(cloud: Deployment, *arguments: str) -> tuple[list[dict[str, object]], str]:
    """The rows and the words on standard error of a boot that does not end well."""
    with pytest.raises(CommandFailed) as failed:
        cloud.boot(*arguments)
    return json.loads(failed.value.stdout or "[]"), failed.value.stderr


def test_servers_come_and_go(deployment, transport_url, sqlite_url, backend):
    cloud = deployment(transport_url, sqlite_url, backend=backend).start(4)

    booted = cloud.boot(*TINY, "--count", "6", *WAIT, "many")

    assert [each["State"] for each in booted] == ["ACTIVE"] * 6
    assert [each["Name"] for each in booted] == [f"many-{number}" for number in range(1, 7)]
    assert all(each["Host"] and each["Attempts"] == 1 for each in booted)
    assert cloud.servers("--long")[0]["Zone"]

    cloud.command("nova-conductor-stub", "delete", *WAIT, *(each["ID"] for each in booted))

    assert cloud.servers() == []
    assert {each["Instances"] for each in cloud.manage("host", "list")} == {0}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        pytest.param({}, "Exceeded max scheduling attempts 3", id="over alternates"),
        pytest.param(NEWTON, "Exceeded max scheduling attempts 3", id="asking again, as Newton"),
        pytest.param(
            {"scheduler": {"max_attempts": 1}}, "The hypervisor of compute-", id="only once"
        ),
    ],
)
def test_a_build_that_always_fails_ends_in_error(
    deployment, transport_url, sqlite_url, settings, reason
):
    cloud = deployment(transport_url, sqlite_url, settings=settings)
    cloud.start(4, "--fail-rate", "1", "--build-seconds", "0")

    (server,), _ = failed_boot(cloud, *TINY, *WAIT, "doomed")

    attempts = settings.get("scheduler", {}).get("max_attempts", 3)
    assert (server["State"], server["Host"]) == ("ERROR", None)
    assert server["Attempts"] == attempts
    assert reason in server["Fault"]


def test_newtons_messages_build_servers_too(deployment, transport_url, sqlite_url):
    cloud = deployment(transport_url, sqlite_url, settings=NEWTON).start(4)

    booted = cloud.boot(*TINY, "--count", "3", *WAIT, "old")

    assert [each["State"] for each in booted] == ["ACTIVE"] * 3


def test_places_groups_and_requests_that_cannot_be_met(deployment, transport_url, sqlite_url):
    cloud = deployment(transport_url, sqlite_url).start(2, "--build-seconds", "0")
    hosts = [each["Host"] for each in cloud.manage("host", "list")]
    cloud.command("nova-scheduler-manage", "group", "create", "apart", "--policy", "anti-affinity")

    apart = cloud.boot(*TINY, "--count", "2", "--group", "apart", *WAIT, "apart")
    there = cloud.boot(*TINY, "--availability-zone", f":{hosts[1]}", *WAIT, "there")
    elsewhere = cloud.boot(*TINY, "--ignore-host", hosts[1], *WAIT, "elsewhere")
    (third,), _ = failed_boot(cloud, *TINY, "--group", "apart", *WAIT, "third")

    assert {each["Host"] for each in apart} == set(hosts)
    assert [each["Host"] for each in there + elsewhere] == [hosts[1], hosts[0]]
    assert (third["State"], third["Attempts"]) == ("ERROR", 1)
    assert third["Fault"] == "No valid host was found. There are not enough hosts available."


def test_a_server_that_no_conductor_took_can_be_deleted(deployment, transport_url, sqlite_url):
    cloud = deployment(transport_url, sqlite_url)
    cloud.sync_database()

    (server,) = cloud.boot(*TINY, "lonely")

    assert server["State"] == "BUILDING (scheduling)"
    cloud.command("nova-conductor-stub", "delete", "lonely", *WAIT)
    assert cloud.servers() == []


@pytest.mark.parametrize(
    ("url", "reason", "left"),
    [
        pytest.param("fake://", "reaches no conductor", [], id="a bus that reaches nobody"),
        pytest.param("rabbit://guest:hidden@127.0.0.1:1/", "cannot be used", [], id="no broker"),
    ],
)
def test_a_bus_that_cannot_be_used_is_one_clear_line(deployment, sqlite_url, url, reason, left):
    cloud = deployment(url, sqlite_url)
    cloud.sync_database()

    _, told = failed_boot(cloud, *TINY, "lost")

    last_line = told.splitlines()[-1]
    assert last_line.startswith("nova-conductor-stub: error: ")
    assert reason in last_line
    assert "hidden" not in told
    assert [each["State"] for each in cloud.servers()] == left


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"upgrade_levels": {"compute": "nonsense"}}, "[upgrade_levels] compute"),
        ({"upgrade_levels": {"scheduler": "nonsense"}}, "[upgrade_levels] scheduler"),
    ],
)
def test_the_conductor_does_not_start_on_a_cap_that_is_none(
    deployment, transport_url, sqlite_url, settings, named
):
    cloud = deployment(transport_url, sqlite_url, settings=settings)
    cloud.sync_database()

    with pytest.raises(CommandFailed, match=named.replace("[", r"\[")) as failed:
        cloud.command("nova-conductor-stub", "serve")

    assert failed.value.exit_code == 1
    assert "Traceback" not in failed.value.stderr
