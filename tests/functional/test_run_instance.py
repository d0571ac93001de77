"""A scheduler that tells hosts to build by itself, as Havana's did, and hosts that do it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from scheduler import objects
from scheduler.concurrency import THREADING
from scheduler.db import instances
from scheduler.db.database import Database
from tests.servers.rabbitmq import RabbitMQ
from tests.waiting import wait_until
from tests.world.bus import RawCaller, enveloped, recorded
from tests.world.deployment import Deployment

RUN_INSTANCE = "derived-havana-run_instance-v2.9.cast"
SETTINGS = {"DEFAULT": {"reserved_host_memory_mb": 0}}
WAITING = {"vm_state": "building", "task_state": "scheduling"}


class Site:
    """A scheduler and hosts, of which so many builds fail."""

    def __init__(self, deployment: Deployment, url: str, fail_rate: str) -> None:
        deployment.sync_database()
        started = [
            deployment.start_scheduler(),
            deployment.start_computes(4, "--build-seconds", "0", "--fail-rate", fail_rate),
        ]
        for daemon in started:
            daemon.wait_ready()
        self.database = Database(f"sqlite:///{deployment.folder}/nova.sqlite")
        self.caller = RawCaller(url)

    def run(self, **properties: Any) -> str:
        """Have one server built; its uuid."""
        message = recorded(RUN_INSTANCE)
        arguments, own = message["args"], str(uuid.uuid4())
        request = arguments["request_spec"]
        flavor = request["instance_type"]
        sizes = {name: flavor[name] for name in ("memory_mb", "vcpus", "root_gb", "ephemeral_gb")}
        with self.database.write() as conn:
            made = objects.Flavor.read_fields(flavor)
            instances.create(conn, objects.Instance(uuid=own, flavor=made, **WAITING, **sizes))
        request["instance_properties"].update(uuid=own, availability_zone=None)
        request.update(instance_uuids=[own], num_instances=1)
        arguments["filter_properties"].update(properties)
        self.caller.publish(enveloped({**message, "_unique_id": uuid.uuid4().hex}))
        return own

    def row(self, uuid_of_server: str) -> objects.Instance:
        with self.database.read() as conn:
            return instances.get(conn, uuid_of_server)

    def settled(self, uuid_of_server: str) -> objects.Instance:
        """The server once its build has come to an end."""
        wait_until(lambda: self.row(uuid_of_server).task_state is None, 60)
        return self.row(uuid_of_server)


@pytest.fixture(params=["0", "1"])
def site(
    request: pytest.FixtureRequest, rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Site, str]]:
    folder = tmp_path_factory.mktemp("havana")
    vhost = rabbitmq.create_vhost()
    url = rabbitmq.url(vhost)
    database_url = f"sqlite:///{folder}/nova.sqlite"
    deployment = Deployment(folder, url, database_url, backend=THREADING, settings=SETTINGS)
    try:
        yield Site(deployment, url, request.param), request.param
    finally:
        deployment.close()


def test_a_server_is_built_or_tried_on_as_many_hosts_as_allowed(site: tuple[Site, str]) -> None:
    running, fail_rate = site

    server = running.run()

    if fail_rate == "0":
        assert running.settled(server).vm_state == "active"
        return
    assert running.settled(server).vm_state == "error"
    with running.database.read() as conn:
        fault = instances.latest_fault(conn, server)
    assert fault is not None
    assert "Exceeded max scheduling attempts 3" in str(fault.message)
