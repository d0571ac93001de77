"""``nova-compute-stub`` as a process on a real broker, fed with recorded messages."""

import copy
import signal
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from scheduler import objects
from scheduler.db import compute_nodes, instances
from scheduler.db.database import Database
from tests.waiting import wait_until
from tests.world.bus import recorded
from tests.world.connection import RawCaller, enveloped
from tests.world.deployment import Deployment

HOST = "compute-01"
TODAYS = "compute-build_and_run_instance-v6.0.cast"
RECORDINGS = (
    TODAYS,
    "compute-build_and_run_instance-v6.0-retry.cast",
    "derived-newton-build_and_run_instance-v4.0.cast",
)


class Order:
    """The recorded messages about one instance of our own, that waits in the database."""

    def __init__(self, database: Database, message: dict[str, Any]) -> None:
        message = copy.deepcopy(message)
        arguments = message["args"]
        if not isinstance(arguments["instance"], dict):  # left out of the derived recordings
            arguments["instance"] = recorded(TODAYS)["args"]["instance"]
        data = arguments["instance"]["nova_object.data"]
        data.update(uuid=str(uuid.uuid4()), host=None, node=None, task_state="scheduling")
        data.update(launched_on=None, compute_id=None)
        arguments.update(node=HOST, limits={})
        self.message = message
        self.uuid = data["uuid"]
        self._database = database
        with database.write() as conn:
            instances.create(conn, objects.from_primitive(arguments["instance"]))

    def send(self, caller: RawCaller) -> None:
        """Have the first host build it."""
        caller.publish(
            enveloped({**self.message, "_unique_id": uuid.uuid4().hex}),
            routing_key=f"compute.{HOST}",
        )

    def terminate(self, caller: RawCaller) -> None:
        """Have the first host delete it."""
        message = recorded("compute-terminate_instance-v6.0.cast")
        message["args"]["instance"] = self.message["args"]["instance"]
        body = enveloped({**message, "_unique_id": uuid.uuid4().hex})
        caller.publish(body, routing_key=f"compute.{HOST}")

    def wait_until_it_runs(self) -> None:
        wait_until(lambda: self.states == ("active", None, HOST), describe="a running instance")

    @property
    def states(self) -> tuple[str | None, str | None, str | None]:
        """vm_state, task_state and host in the database."""
        with self._database.read() as conn:
            row = instances.get(conn, self.uuid)
        return row.vm_state, row.task_state, row.host


@pytest.fixture
def database(sqlite_url) -> Iterator[Database]:
    database = Database(sqlite_url)
    yield database
    database.dispose()


@pytest.fixture
def computes(deployment, transport_url, sqlite_url) -> Deployment:
    """A deployment with tables, in which nothing runs yet."""
    made: Deployment = deployment(transport_url, sqlite_url)
    made.sync_database()
    return made


def test_recorded_orders_are_carried_out_also_after_a_sighup(computes, database, transport_url):
    daemon = computes.start_computes(2, "--build-seconds", "0").wait_ready()
    daemon.signal(signal.SIGHUP)
    with RawCaller(transport_url) as caller:
        for recording in RECORDINGS:
            order = Order(database, recorded(recording))
            order.send(caller)
            order.wait_until_it_runs()
            with database.read() as conn:
                node = compute_nodes.get(conn, HOST, HOST)
            assert (node.vcpus_used, node.memory_mb_used) == (1, 512 + 2048)
            order.terminate(caller)
            wait_until(lambda: not _present(database), describe="an empty host")
    assert daemon.terminate() == 0


def test_a_build_in_hand_is_finished_before_the_end(computes, database, transport_url, backend):
    computes.backend = backend
    daemon = computes.start_computes(1, "--build-seconds", "2").wait_ready()
    order = Order(database, recorded(TODAYS))
    with RawCaller(transport_url) as caller:
        order.send(caller)
        wait_until(lambda: order.states[1] == "spawning", describe="a build that has begun")
    assert daemon.terminate() == 0
    assert order.states == ("active", None, HOST)


def _present(database: Database) -> list[str]:
    with database.read() as conn:
        node = compute_nodes.get(conn, HOST, HOST)
        present = [each.uuid for each in instances.list_all(conn, host=HOST, parts=False)]
    assert node.running_vms == len(present)
    return present
