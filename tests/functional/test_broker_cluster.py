"""Three schedulers on a RabbitMQ cluster of three nodes, as docs/cluster.md says; one node dies."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import oslo_messaging
import pytest

from scheduler.concurrency import THREADING
from tests import pages
from tests.servers import rabbitmq_cluster
from tests.servers.fixtures import require
from tests.servers.rabbitmq_cluster import RabbitMQCluster
from tests.waiting import wait_until
from tests.world import databases, fleet
from tests.world.bus import a_context, scheduler_api
from tests.world.fleet import a_spec

CALLERS = 6
CALLS = 12
ANSWER_SECONDS = 10
TRIES = 5
#: The library's manager cannot do with a process group whose leader has ended.
UNMANAGED = {"use_queue_manager": "false"}
CLUSTER = pages.ROOT / "docs" / "cluster.md"


@pytest.fixture
def cluster():
    require(rabbitmq_cluster.PROGRAMS)
    with RabbitMQCluster() as nodes:
        yield nodes


@pytest.fixture
def rabbit():
    """The options on the page, with names of queues that only this test uses."""
    name = f"test-{uuid.uuid4().hex}"
    yield {**pages.settings(CLUSTER, "cluster")["oslo_messaging_rabbit"], "hostname": name}
    for path in Path("/dev/shm").glob(f"*{name}*"):  # where the library counts queues
        path.unlink()


def ask(api, server):
    """The host for *server*, and how often was asked; as conductors, who ask again."""
    context = a_context()
    for number in range(1, TRIES + 1):
        try:
            ((chosen, *_rest),) = api.select_destinations(
                context, a_spec(server), [server], return_objects=True, return_alternates=True
            )
        except oslo_messaging.MessagingTimeout:
            continue
        return str(chosen.service_host), number
    raise AssertionError(f"{server}: never answered")


def queues(node, column):
    _header, *lines = node.control("list_queues", "name", column).splitlines()
    return dict(line.split("\t") for line in lines)


def subscribed(cloud, node):
    """Three schedulers that the broker brings requests.

    One that it refuses at first tries again a second later, when all calls may have been answered.
    """
    schedulers = [cloud.start_scheduler() for _number in range(3)]
    assert all(each.wait_ready() for each in schedulers)
    wait_until(lambda: queues(node, "consumers").get("scheduler") == "3")
    return schedulers


def test_no_request_is_lost_with_a_node(cluster, rabbit, deployment, mariadb_url, tmp_path):
    fleet.install(mariadb_url)
    cloud = deployment(
        cluster.url(),
        mariadb_url,
        backend=THREADING,
        settings={"DEFAULT": {"service_down_time": 3600}, "oslo_messaging_rabbit": rabbit},
    )
    schedulers = subscribed(cloud, cluster.nodes[1])
    seen = {(row["what"], row["name"]): row["state"] for row in cloud.manage("broker", "check")}
    assert seen["queue", "scheduler_fanout"] == "present"
    assert {*seen.values()} == {"connected", "present"}
    placed = {}

    def boot_several(_caller):
        for _call in range(CALLS):
            server = str(uuid.uuid4())
            placed[server] = ask(api, server)

    with (
        scheduler_api(
            tmp_path, cluster.url(), response_seconds=ANSWER_SECONDS, rabbit={**rabbit, **UNMANAGED}
        ) as api,
        ThreadPoolExecutor(CALLERS) as callers,
    ):
        going = [callers.submit(boot_several, number) for number in range(CALLERS)]
        wait_until(lambda: len(placed) > CALLERS or any(each.done() for each in going), 60)
        kinds = queues(cluster.nodes[1], "type")
        cluster.nodes[0].kill()
        assert [each.result() for each in going]
    assert len(placed) == CALLERS * CALLS
    claims = databases.query(mariadb_url, "SELECT consumer_uuid, host FROM claims")
    booked = sorted((row["consumer_uuid"], row["host"]) for row in claims)
    assert booked == sorted((server, host) for server, (host, _n) in placed.items())
    assert kinds["scheduler"] == "quorum"
    assert kinds["scheduler_fanout"] == "stream"
    assert {kind for name, kind in kinds.items() if name.startswith("reply_")} == {"quorum"}
    wait_until(lambda: all("Placement of 1 instance(s)" in each.log for each in schedulers))
