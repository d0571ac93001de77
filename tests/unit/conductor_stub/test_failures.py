"""What cannot be built ends in ERROR, alone; what is gone is left alone."""

from __future__ import annotations

import json
import logging

import pytest

from conductor_stub import server_rows
from scheduler import errors
from scheduler.db import instances, services
from tests.unit.conductor_stub import builders
from tests.unit.conductor_stub.driving import attempts, build, fault, states, tried

NO_VALID_HOST = errors.NoValidHost(reason="There are not enough hosts available.")


def test_without_a_host_every_instance_of_the_batch_ends_in_error(conductor):
    gone, *asked_for = everything = conductor.asked_for(3)
    with conductor.database.write() as conn:
        instances.destroy(conn, gone.uuid)
    conductor.scheduler.answer = NO_VALID_HOST

    build(conductor, everything)

    assert states(conductor, asked_for) == ["error", "error"]
    assert len(conductor.told.errors) == 2
    for instance in asked_for:
        row, left = conductor.row(instance), fault(conductor, instance)
        assert (row.task_state, row.host) == (None, None)
        assert row.system_metadata["network_allocated"] == "False"
        assert left.message == "No valid host was found. There are not enough hosts available."
        assert (left.code, left.host) == (500, "sched1")
        assert left.details.startswith("Traceback (most recent call last):")
        with conductor.database.read() as conn:
            assert server_rows.list_build_requests(conn, [instance.uuid]) == []
    assert conductor.compute.casts == []


def test_the_rows_are_the_recorded_ones(conductor):
    recorded = json.loads((builders.WIRE / "db-after-max_retries.json").read_text())
    (instance,) = asked_for = conductor.asked_for()

    build(conductor, asked_for, tried(3, exc_reason="no space"))

    row, left = conductor.row(instance), fault(conductor, instance)
    assert {"vm_state": row.vm_state, "task_state": row.task_state} == recorded["instance"]
    key = "system_metadata.network_allocated"
    assert row.system_metadata["network_allocated"] == recorded[key]
    for name in ("code", "message", "host"):
        assert getattr(left, name) == recorded["fault"][name]
    assert left.details.splitlines()[0] == recorded["fault"]["details"].splitlines()[0]
    assert left.details.splitlines()[-1] == recorded["fault"]["details"].splitlines()[-1]
    assert attempts(conductor, instance) == "3"


@pytest.mark.parametrize(
    ("lose", "state"),
    [
        pytest.param(lambda conn, uuid: instances.destroy(conn, uuid), None, id="instance gone"),
        pytest.param(server_rows.delete_build_request, "building", id="request gone"),
        pytest.param(None, "error", id="no way to its host"),
    ],
)
def test_one_that_is_lost_does_not_stop_the_builds_of_the_others(conductor, lose, state):
    asked_for = conductor.asked_for(3)
    lost = asked_for[1]
    if lose is None:
        conductor.compute.unreachable = {"b"}
    else:
        with conductor.database.write() as conn:
            lose(conn, lost.uuid)
    conductor.scheduler.answer = [[builders.selection(name)] for name in "abc"]
    build(conductor, asked_for)
    assert [host for host, _ in conductor.compute.casts] == ["a", "c"]
    assert [each.error.args[0] for each in conductor.told.errors] == (
        ["no way to b"] if state == "error" else []
    )
    if state is not None:
        assert states(conductor, [lost]) == [state]
    if state == "building":
        with conductor.database.read() as conn:
            assert server_rows.get_instance_mapping(conn, lost.uuid) is None, "nor is it mapped"


@pytest.mark.parametrize(("api_version", "casts"), [(11, 1), (12, 0), (None, 0)])
def test_an_api_from_before_build_requests_needs_none(conductor, api_version, casts):
    asked_for = conductor.asked_for(mapped=False)
    if api_version is not None:
        with conductor.database.write() as conn:
            services.get_or_create(conn, "api", "nova-osapi_compute", "api", api_version)
    conductor.scheduler.answer = [[builders.selection("a")]]

    build(conductor, asked_for)

    assert len(conductor.compute.casts) == casts


@pytest.mark.parametrize(
    ("lists", "built"),
    [
        pytest.param([["a"]], ["a"], id="one list too few"),
        pytest.param([["a"], ["b"], ["c"]], ["a", "b"], id="one too many"),
        pytest.param([["a"], []], ["a"], id="an empty one"),
    ],
)
def test_an_instance_that_the_scheduler_forgot_ends_in_error(conductor, lists, built):
    asked_for = conductor.asked_for(2)
    conductor.scheduler.answer = [[builders.selection(name) for name in names] for names in lists]

    build(conductor, asked_for)

    assert [host for host, _ in conductor.compute.casts] == built
    expected = ["building"] * len(built) + ["error"] * (2 - len(built))
    assert states(conductor, asked_for) == expected


def test_what_operators_grep_for_is_logged(conductor, caplog):
    conductor.scheduler.answer = NO_VALID_HOST

    with caplog.at_level(logging.WARNING):
        build(conductor, conductor.asked_for())

    assert [entry.getMessage() for entry in caplog.records] == [
        f"Failed to compute_task_build_instances: {NO_VALID_HOST}",
        "Setting instance to ERROR state.",
    ]


@pytest.mark.parametrize(
    ("error", "code", "message", "has_details"),
    [
        (errors.NoValidHost(reason=""), 500, "No valid host was found. ", True),
        (errors.FlavorNotFound(flavor_id="x"), 404, "Flavor x could not be found.", False),
        (ValueError("first line\nTraceback of elsewhere"), 500, "first line", True),
        (KeyError(), 500, "KeyError", True),
    ],
)
def test_an_error_becomes_a_fault(error, code, message, has_details):
    left = errors.Fault.from_error(error)
    assert (left.code, left.message, bool(left.details)) == (code, message, has_details)
