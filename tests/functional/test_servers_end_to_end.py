"""A person boots, looks at and deletes servers: all programs, a real broker, a real database."""

from __future__ import annotations

import json

import pytest

from tests.daemons.deployment import CommandFailed

TIMEOUT = ("--wait", "--timeout", "60")


def test_servers_come_and_go(deployment, transport_url, sqlite_url, backend):
    cloud = deployment(transport_url, sqlite_url, backend=backend).start(4)

    booted = cloud.boot(
        *("--flavor", "m1.tiny", "--image", "cirros", "--count", "6", *TIMEOUT, "many")
    )

    assert [each["State"] for each in booted] == ["ACTIVE"] * 6
    assert [each["Name"] for each in booted] == [f"many-{number}" for number in range(1, 7)]
    assert all(each["Host"] and each["Attempts"] == 1 for each in booted)
    assert cloud.servers("--long")[0]["Zone"]

    cloud.command("nova-conductor-stub", "delete", *TIMEOUT, *(each["ID"] for each in booted))

    assert cloud.servers() == []
    assert {each["Instances"] for each in cloud.manage("host", "list")} == {0}


def test_a_failed_build_goes_to_an_alternate_and_in_the_end_to_error(
    deployment, transport_url, sqlite_url
):
    cloud = deployment(transport_url, sqlite_url).start(
        4, "--fail-rate", "1", "--build-seconds", "0"
    )

    with pytest.raises(CommandFailed) as failed:
        cloud.boot("--flavor", "m1.tiny", "--image", "cirros", *TIMEOUT, "doomed")

    (server,) = json.loads(failed.value.stdout)
    assert (server["State"], server["Host"], server["Attempts"]) == ("ERROR", None, 3)
    assert "Exceeded max scheduling attempts 3" in server["Fault"]
