"""Servers that are asked for as today's API does, on a real broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conductor_stub import build_requests, mappings
from scheduler.concurrency import EVENTLET
from scheduler.db.database import Database
from scheduler.db.databases import list_cells
from tests.servers.rabbitmq import RabbitMQ
from tests.world.booting import boot, hosts, states
from tests.world.deployment import Deployment

HOSTS = 4
SETTINGS = {"DEFAULT": {"reserved_host_memory_mb": 0}}
AS_TODAY = ("--api", "current")


@pytest.fixture(scope="module")
def cloud(rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Four hosts, for tests that look at their own servers only."""
    folder = tmp_path_factory.mktemp("cloud")
    vhost = rabbitmq.create_vhost()
    url = f"sqlite:///{folder}/nova.sqlite"
    made = Deployment(folder, rabbitmq.url(vhost), url, backend=EVENTLET, settings=SETTINGS)
    try:
        yield made.start(HOSTS, "--build-seconds", "0")
    finally:
        made.close()


def cells(cloud: Deployment, uuids: list[str]) -> set[str]:
    """The names of the cells that the servers are mapped to; their build requests are gone."""
    database = Database(f"sqlite:///{cloud.folder}/nova.sqlite")
    try:
        with database.read() as conn:
            assert build_requests.list_all(conn) == []
            names = {each.id: str(each.name) for each in list_cells(conn)}
            found = [mappings.get_instance_mapping(conn, uuid) for uuid in uuids]
    finally:
        database.dispose()
    return {names[each.cell_id] if each and each.cell_id else "none" for each in found}


def test_three_at_once_are_built_in_their_cell(cloud: Deployment) -> None:
    servers = boot(cloud, "m1.tiny", "--count", "3", "three", *AS_TODAY)

    assert [each["Name"] for each in servers] == ["three-1", "three-2", "three-3"]
    assert (states(servers), {each["Attempts"] for each in servers}) == ({"ACTIVE"}, {1})
    assert set(hosts(servers)) <= {each["Host"] for each in cloud.manage("host", "list")}
    assert cells(cloud, [each["ID"] for each in servers]) == {"cell1"}


def test_what_fits_nowhere_is_in_cell0(cloud: Deployment) -> None:
    servers = boot(cloud, "m1.xlarge", "--count", "30", "impossible", *AS_TODAY)

    assert (len(servers), states(servers)) == (30, {"ERROR"})
    assert {each["Fault"] for each in servers} == {
        "No valid host was found. There are not enough hosts available."
    }
    assert cells(cloud, [each["ID"] for each in servers]) == {"cell0"}
