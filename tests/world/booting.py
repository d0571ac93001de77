"""Booting for tests that do not mind when servers fail, or that look at how they failed."""

import json
from typing import Any

from tests.world.deployment import CommandFailed, Deployment

SERVER = ("--image", "cirros")
WAIT = ("--wait", "--timeout", "90")  # less than the command itself gets
SOME_FAILED = 1


def boot(cloud: Deployment, flavor: str, *words: str) -> list[dict[str, Any]]:
    """Boot servers and wait for their end, good or bad; the rows of ``boot``'s table."""
    try:
        return cloud.boot("--flavor", flavor, *SERVER, *WAIT, *words)
    except CommandFailed as failed:
        if failed.exit_code != SOME_FAILED or not failed.stdout:
            raise
        rows: list[dict[str, Any]] = json.loads(failed.stdout)
        return rows


def delete(cloud: Deployment, servers: list[dict[str, Any]]) -> None:
    """Delete servers and wait until they are gone."""
    cloud.command("nova-conductor-stub", "delete", *WAIT, *(each["id"] for each in servers))


def states(servers: list[dict[str, Any]]) -> set[str]:
    return {each["state"] for each in servers}


def hosts(servers: list[dict[str, Any]]) -> list[str]:
    return [each["host"] for each in servers]
