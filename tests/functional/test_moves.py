"""Servers that change their host, on a real broker, told from the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from scheduler.concurrency import THREADING
from tests.world import usage
from tests.world.booting import boot
from tests.world.deployment import CommandFailed, Deployment

HOSTS = 3
WAIT = ("--wait", "--timeout", "60")
SETTINGS = {"DEFAULT": {"reserved_host_memory_mb": 0}}


@pytest.fixture(scope="module", params=[None, "newton"], ids=["today", "computes of Newton"])
def cloud(request, on_sqlite) -> Iterator[Deployment]:
    """Three hosts that speak an old version or today's."""
    caps = {"upgrade_levels": {"compute": request.param}} if request.param else {}
    with on_sqlite(backend=THREADING, settings={**SETTINGS, **caps}) as made:
        yield made.start(HOSTS, "--build-seconds", "0")


def move(cloud: Deployment, *words: str) -> dict[str, Any]:
    (row,) = cloud.rows("nova-conductor-stub", *words, *WAIT)
    return dict(row)


def test_a_server_is_migrated_and_resized_to_other_hosts(cloud):
    (server,) = boot(cloud, "m1.tiny", "traveller")

    migrated = move(cloud, "migrate", "traveller")
    resized = move(cloud, "resize", "traveller", "--flavor", "m1.small")

    assert (migrated["State"], migrated["Flavor"]) == ("ACTIVE", "m1.tiny")
    assert migrated["Host"] != server["Host"]
    assert (resized["State"], resized["Flavor"]) == ("ACTIVE", "m1.small")
    assert resized["Host"] != migrated["Host"]
    shown = json.loads(cloud.command("nova-conductor-stub", "show", "traveller", "-f", "json"))
    assert (shown["memory_mb"], shown["host"]) == (2048, resized["Host"])
    assert usage.settled(cloud.database_url)


def test_without_a_host_a_server_stays_where_it_is(cloud):
    (server,) = boot(cloud, "m1.tiny", "settled")
    cloud.command("nova-scheduler-manage", "flavor", "create", "huge", "--ram", "99999999")

    with pytest.raises(CommandFailed) as failed:
        move(cloud, "resize", "settled", "--flavor", "huge")

    assert "No valid host found for resize" in str(failed.value)
    shown = json.loads(cloud.command("nova-conductor-stub", "show", "settled", "-f", "json"))
    assert (shown["state"], shown["host"]) == ("ACTIVE", server["Host"])
    assert "not enough hosts" in shown["fault_message"]
