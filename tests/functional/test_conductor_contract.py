"""A conductor between two ends that are held by hand: recorded casts in, raw casts out."""

from __future__ import annotations

import contextlib
import copy
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from conductor_stub import server_rows
from scheduler import objects
from scheduler.concurrency import EVENTLET, THREADING
from scheduler.db import instances
from scheduler.db.database import Database
from tests.waiting import wait_until
from tests.world import fleet
from tests.world.bus import RawCaller, enveloped, recorded
from tests.world.deployment import Deployment
from tests.world.fixtures import MakeDeployment

RESCHEDULE = "conductor-build_instances-reschedule.cast"
NEWTONS = "derived-newton-build_instances-v1.10.cast"
QUEUES = ("scheduler", *(f"compute.{host}" for host in fleet.HOSTS))
SETTINGS = {"DEFAULT": {"host": "cond1", "service_down_time": 3600}}


@dataclass
class Ends:
    """What stands around one conductor; ``caller`` keeps what is sent to scheduler and hosts."""

    database: Database
    caller: RawCaller

    def wait_for(self, **changes: Any) -> dict[str, Any]:
        """An instance that waits for its first host, as it is on the wire."""
        envelope = copy.deepcopy(recorded(RESCHEDULE)["args"]["instances"][0])
        data = envelope["nova_object.data"]
        data.update(uuid=str(uuid.uuid4()), host=None, node=None, task_state="scheduling")
        data.update(launched_on=None, compute_id=None, **changes)
        instance = objects.from_primitive(envelope)
        with self.database.write() as conn:
            instances.create(conn, instance)
            server_rows.create_build_request(conn, instance)
        return envelope

    def send(self, message: dict[str, Any], **arguments: Any) -> None:
        """Have the conductor do what a recorded message says, with other arguments."""
        message = copy.deepcopy(message)
        message["args"].update(arguments)
        message["_unique_id"] = uuid.uuid4().hex
        self.caller.publish(enveloped(message), routing_key="conductor")

    def row(self, envelope: dict[str, Any]) -> objects.Instance:
        with self.database.read() as conn:
            return instances.get(conn, envelope["nova_object.data"]["uuid"])

    def told(self, host: str) -> list[dict[str, Any]]:
        """What has been sent to *host* since the last look."""
        return self.caller.taken_from(f"compute.{host}")


@contextlib.contextmanager
def running(deployment: Deployment, *programs: str) -> Iterator[Ends]:
    with (
        deployment,
        deployment.database() as database,
        RawCaller(deployment.transport_url) as caller,
    ):
        fleet.install(deployment.database_url)
        caller.collect([name for name in QUEUES if name not in programs])
        with database.write() as conn:
            server_rows.create_host_mappings(conn, fleet.HOSTS)
        if "scheduler" in programs:
            deployment.start_scheduler().wait_ready()
        deployment.start_conductor().wait_ready()
        yield Ends(database, caller)


@pytest.fixture(
    scope="module",
    params=[(None, EVENTLET), ("newton", THREADING)],
    ids=["hosts of today", "hosts of Newton"],
)
def alone(
    request: pytest.FixtureRequest, on_sqlite: MakeDeployment
) -> Iterator[tuple[Ends, str | None]]:
    """A conductor without a scheduler, and the release of its hosts."""
    release, backend = request.param
    caps = {"upgrade_levels": {"compute": release}} if release else {}
    with running(on_sqlite(backend=backend, settings={**SETTINGS, **caps})) as ends:
        yield ends, release


@pytest.fixture(scope="module")
def ends(on_sqlite: MakeDeployment) -> Iterator[Ends]:
    """A conductor with a scheduler."""
    with running(on_sqlite(backend=THREADING, settings=SETTINGS), "scheduler") as ends:
        yield ends


def alternates(*hosts: str) -> list[dict[str, Any]]:
    """Selections of *hosts*, which need no booking."""
    (recording,) = recorded(RESCHEDULE)["args"]["host_lists"][0][:1]
    made = []
    for host in hosts:
        each = copy.deepcopy(recording)
        each["nova_object.data"].update(service_host=host, nodename=host, allocation_request="null")
        made.append(each)
    return made


def tried(attempts: int) -> dict[str, Any]:
    hosts = [["cmp1", "cmp1"]] * attempts
    return {"retry": {"num_attempts": attempts, "hosts": hosts, "exc_reason": "no space"}}


def test_a_failed_build_goes_to_the_next_alternate_without_the_scheduler(
    alone: tuple[Ends, str | None],
) -> None:
    ends, release = alone
    instance = ends.wait_for()

    ends.send(
        recorded(RESCHEDULE),
        instances=[instance],
        filter_properties=tried(1),
        host_lists=[alternates("cmp2", "cmp3")],
    )

    (cast,) = wait_until(lambda: ends.told("cmp2"))
    arguments = cast["args"]
    assert cast["method"] == "build_and_run_instance"
    assert arguments["filter_properties"]["retry"]["num_attempts"] == 2
    assert arguments["filter_properties"]["retry"]["hosts"][-1] == ["cmp2", "cmp2"]
    if release is None:
        assert cast["version"] == "6.0"
        assert arguments["request_spec"]["nova_object.name"] == "RequestSpec"
        left = [each["nova_object.data"]["service_host"] for each in arguments["host_list"]]
        assert (left, arguments["accel_uuids"]) == (["cmp3"], [])
    else:
        assert cast["version"] == "4.0"
        assert "nova_object.name" not in arguments["request_spec"]
        assert not {"host_list", "accel_uuids"} & set(arguments)
        assert arguments["instance"]["nova_object.version"] == "2.3"
    assert ends.caller.taken_from("scheduler") == []


@pytest.mark.parametrize(
    ("attempts", "host_lists", "reason"),
    [
        pytest.param(1, [[]], "Exhausted all hosts available for retrying", id="none left"),
        pytest.param(1, [None], "Exhausted all hosts available for retrying", id="none known"),
        pytest.param(3, [["cmp2"]], "Exceeded max scheduling attempts 3", id="fourth attempt"),
    ],
)
def test_what_has_no_further_try_ends_in_error(
    alone: tuple[Ends, str | None],
    attempts: int,
    host_lists: list[Any],
    reason: str,
) -> None:
    ends, _ = alone
    instance = ends.wait_for()
    lists = [None if each is None else alternates(*each) for each in host_lists]

    ends.send(
        recorded(RESCHEDULE),
        instances=[instance],
        filter_properties=tried(attempts),
        host_lists=lists,
    )

    wait_until(lambda: ends.row(instance).vm_state == "error")
    with ends.database.read() as conn:
        fault = instances.latest_fault(conn, instance["nova_object.data"]["uuid"])
    assert fault is not None
    assert reason in (fault.message or "")
    assert (fault.code, fault.host) == (500, "cond1")
    assert ends.row(instance).task_state is None
    assert ends.caller.taken_from("scheduler") == []
    assert [ends.told(host) for host in fleet.HOSTS] == [[], [], []]


def test_of_two_servers_one_of_which_is_deleted_the_other_is_built(ends: Ends) -> None:
    deleted, kept = ends.wait_for(), ends.wait_for()
    with ends.database.write() as conn:
        instances.destroy(conn, deleted["nova_object.data"]["uuid"])

    ends.send(recorded(NEWTONS), instances=[deleted, kept], filter_properties={})

    def told() -> list[dict[str, Any]]:
        return [cast for host in fleet.HOSTS for cast in ends.told(host)]

    (cast,) = wait_until(told)
    uuid_of_kept = kept["nova_object.data"]["uuid"]
    assert cast["args"]["instance"]["nova_object.data"]["uuid"] == uuid_of_kept
    with ends.database.read() as conn:
        mapping = server_rows.get_instance_mapping(conn, uuid_of_kept)
        assert mapping is not None
        assert mapping.cell_id == server_rows.first_cell(conn).id
    assert ends.row(kept).vm_state == "building"
    assert told() == []
