"""A scheduler that tells hosts to build by itself, as Havana's did, and hosts that do it."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from scheduler import objects
from scheduler.concurrency import THREADING
from scheduler.db import instances
from scheduler.db.database import Database
from tests.waiting import wait_until
from tests.world.bus import RawCaller, enveloped, recorded
from tests.world.deployment import Deployment
from tests.world.fixtures import MakeDeployment

RUN_INSTANCE = "derived-havana-run_instance-v2.9.cast"
SETTINGS = {"DEFAULT": {"reserved_host_memory_mb": 0}}
WAITING = {"vm_state": "building", "task_state": "scheduling"}


class Site:
    """A scheduler and hosts, of which so many builds fail."""

    def __init__(self, deployment: Deployment, database: Database, fail_rate: str) -> None:
        deployment.sync_database()
        started = [
            deployment.start_scheduler(),
            deployment.start_computes(4, "--build-seconds", "0", "--fail-rate", fail_rate),
        ]
        for daemon in started:
            daemon.wait_ready()
        self.database = database
        self.caller = RawCaller(deployment.transport_url)

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


@pytest.mark.parametrize("fail_rate", ["0", "1"])
def test_a_server_is_built_or_tried_on_as_many_hosts_as_allowed(
    on_sqlite: MakeDeployment, fail_rate: str
) -> None:
    with on_sqlite(backend=THREADING, settings=SETTINGS) as made, made.database() as database:
        site = Site(made, database, fail_rate)
        server = site.run()
        state = site.settled(server).vm_state
        with database.read() as conn:
            fault = instances.latest_fault(conn, server)
    assert state == ("active" if fail_rate == "0" else "error")
    if fail_rate == "1":
        assert "Exceeded max scheduling attempts 3" in str(fault and fault.message)
