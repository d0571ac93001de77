"""A conductor between two ends that are held by hand: recorded casts in, raw casts out."""

import copy
import uuid
from typing import Any

import pytest

from conductor_stub import server_rows
from scheduler import objects
from scheduler.concurrency import EVENTLET, THREADING
from scheduler.db import instances
from scheduler.db.database import Database
from tests.waiting import wait_until
from tests.world import fleet
from tests.world.bus import recorded
from tests.world.connection import RawCaller, enveloped

RESCHEDULE = "conductor-build_instances-reschedule.cast"
DATA = "nova_object.data"


def waiting_instance(database: Database) -> dict[str, Any]:
    """An instance that waits for its first host, as it is on the wire."""
    envelope: dict[str, Any] = recorded(RESCHEDULE)["args"]["instances"][0]
    own = {"uuid": str(uuid.uuid4()), "task_state": "scheduling"}
    envelope[DATA].update(own, host=None, node=None, launched_on=None, compute_id=None)
    instance = objects.from_primitive(envelope)
    with database.write() as conn:
        instances.create(conn, instance)
        server_rows.create_build_request(conn, instance)
    return envelope


def failed_build(instance: dict[str, Any], attempts: int, alternates: list[str]) -> str:
    """The recorded cast for *instance* after so many attempts, with hosts that need no booking."""
    message = recorded(RESCHEDULE)
    (selection, *_more) = message["args"]["host_lists"][0]
    left = [copy.deepcopy(selection) for _host in alternates]
    for each, host in zip(left, alternates, strict=True):
        each[DATA].update(service_host=host, nodename=host, allocation_request="null")
    hosts = [["cmp1", "cmp1"]] * attempts
    retry = {"num_attempts": attempts, "hosts": hosts, "exc_reason": "no space"}
    message["args"].update(
        instances=[instance], filter_properties={"retry": retry}, host_lists=[left]
    )
    return enveloped({**message, "_unique_id": uuid.uuid4().hex})


@pytest.mark.parametrize(
    ("release", "backend"),
    [
        pytest.param(None, EVENTLET, id="hosts of today"),
        pytest.param("newton", THREADING, id="hosts of Newton"),
    ],
)
def test_failed_builds_go_to_alternates_or_end_without_the_scheduler(on_sqlite, release, backend):
    caps = {"upgrade_levels": {"compute": release}} if release else {}
    settings = {"DEFAULT": {"host": "cond1", "service_down_time": 3600}, **caps}
    with (
        on_sqlite(backend=backend, settings=settings) as deployment,
        deployment.database() as database,
        RawCaller(deployment.transport_url) as caller,
    ):
        fleet.install(deployment.database_url)
        caller.collect(["scheduler", *(f"compute.{host}" for host in fleet.HOSTS)])
        with database.write() as conn:
            server_rows.create_host_mappings(conn, fleet.HOSTS)
        deployment.start_conductor().wait_ready()
        for attempts, alternates, reason in (
            (1, [], "Exhausted all hosts available for retrying"),
            (3, ["cmp2"], "Exceeded max scheduling attempts 3"),
        ):
            own = waiting_instance(database)
            caller.publish(failed_build(own, attempts, alternates), routing_key="conductor")
            assert_ends_in_error(database, own[DATA]["uuid"], reason)
        body = failed_build(waiting_instance(database), 1, ["cmp2", "cmp3"])
        caller.publish(body, routing_key="conductor")
        (cast,) = wait_until(lambda: caller.taken_from("compute.cmp2"))
        assert [caller.taken_from(name) for name in ("scheduler", "compute.cmp3")] == [[], []]
    assert_next_attempt(cast, release)


def assert_ends_in_error(database: Database, own: str, reason: str) -> None:
    """The server has no host, and says why."""

    def row() -> objects.Instance:
        with database.read() as conn:
            return instances.get(conn, own)

    wait_until(lambda: row().vm_state == "error")
    with database.read() as conn:
        fault = instances.latest_faults(conn, [own])[own]
    assert reason in (fault.message or "")
    assert (fault.code, fault.host, row().task_state) == (500, "cond1", None)


def assert_next_attempt(cast: dict[str, Any], release: str | None) -> None:
    """The order to the first alternate, in the form of its release."""
    arguments = cast["args"]
    assert cast["method"] == "build_and_run_instance"
    assert arguments["filter_properties"]["retry"]["num_attempts"] == 2
    assert arguments["filter_properties"]["retry"]["hosts"][-1] == ["cmp2", "cmp2"]
    if release is None:
        assert cast["version"] == "6.0"
        assert arguments["request_spec"]["nova_object.name"] == "RequestSpec"
        left = [each[DATA]["service_host"] for each in arguments["host_list"]]
        assert (left, arguments["accel_uuids"]) == (["cmp3"], [])
    else:
        assert cast["version"] == "4.0"
        assert "nova_object.name" not in arguments["request_spec"]
        assert not {"host_list", "accel_uuids"} & set(arguments)
        assert arguments["instance"]["nova_object.version"] == "2.3"
