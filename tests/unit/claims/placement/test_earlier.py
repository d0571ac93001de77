"""(allocations of the instances of a request) -> it was answered before, or not."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import pytest

from scheduler import errors
from scheduler.claims.backend import Request
from scheduler.claims.placement.backend import PlacementClaims
from scheduler.claims.placement.client import ATTEMPTS, PlacementClient
from scheduler.hosts.instances import TrackedInstance
from scheduler.hosts.reservations import Reservations
from tests.builders import a_fleet, a_request
from tests.unit.claims.placement.test_calls import a_placement

UUIDS = ("f4a0f8c0-0000-4000-8000-000000000001", "f4a0f8c0-0000-4000-8000-000000000002")
CONTEXT = SimpleNamespace(request_id="req-1", project_id="p", user_id="u")
NOTHING = (200, {"allocations": {}})
REFUSED = errors.NoValidHost(reason="")
CHANGED = errors.AllocationUpdateFailed(consumer_uuid=UUIDS[0], error="changed")


def on(*providers):
    """The answer to what an instance has: a CPU on each of *providers*."""
    found = {name: {"generation": 3, "resources": {"VCPU": 1}} for name in providers}
    return 200, {"allocations": found}


def answered(answers, uuids=UUIDS, error=REFUSED, instances=(), **request):
    """The nodes found when the request fails with *error*, the instances asked for, the waits."""
    table = a_fleet(*({"host": f"H{n}", "uuid": f"node-h{n}"} for n in range(1, 5)))
    for instance in instances:
        table.put_instance(instance.host, instance.uuid, instance)
    manager = SimpleNamespace(
        lock=contextlib.nullcontext(), table=table, reservations=Reservations(table)
    )
    waited, nodes = [], None
    with a_placement(*answers) as (server, conf):
        claims = PlacementClaims(conf, PlacementClient.from_conf(conf, waited.append), manager)
        asked = Request(CONTEXT, a_request(**request), tuple(uuids), with_alternates=False)
        with contextlib.suppress(type(error)), claims.open(asked) as claiming:
            nodes = [each.node_uuid for each in claiming.refused(error).placed]
    assert all(call[2]["x-openstack-request-id"] == "req-1" for call in server.calls)
    return nodes, [call[1].rpartition("/")[2] for call in server.calls], waited


@pytest.mark.parametrize(
    ("answers", "nodes"),
    [
        pytest.param([on("node-h1"), on("node-h2")], ["node-h1", "node-h2"], id="all"),
        pytest.param([on("disk", "node-h2"), on("node-h2")], ["node-h2"] * 2, id="a tree"),
        pytest.param([NOTHING], None, id="none"),
        pytest.param([(200, {})], None, id="none in other words"),
        pytest.param([on("disk"), on("disk")], None, id="on no host that is known"),
        pytest.param([on("node-h1"), NOTHING], None, id="some"),
    ],
)
def test_allocations_of_all_instances_are_an_answer(answers, nodes):
    assert answered(answers) == (nodes, list(UUIDS[: len(answers)]), [0])


@pytest.mark.parametrize(
    ("answers", "nodes"),
    [
        pytest.param([NOTHING, on("node-h1")], ["node-h1"], id="soon"),
        pytest.param([NOTHING] * ATTEMPTS, None, id="never"),
    ],
)
def test_another_worker_that_claims_just_now_is_waited_for(answers, nodes):
    found, _asked_for, waited = answered(answers, UUIDS[:1], CHANGED)
    assert (found, waited) == (nodes, list(range(len(answers))))


@pytest.mark.parametrize(
    ("request_fields", "nodes"),
    [
        ({}, ["node-h1"]),
        ({"ignore_hosts": ["h1"]}, None),
        ({"ignore_hosts": ["h2"]}, ["node-h1"]),
        ({"tried": [("h1", "n")]}, None),
        ({"tried": [("h9", "n"), ("H1", "n")]}, None),
        ({"tried": [("h9", "n")]}, ["node-h1"]),
        ({"tried": []}, ["node-h1"]),
    ],
)
def test_a_host_that_the_request_rules_out_is_no_answer(request_fields, nodes):
    assert answered([on("node-h1")], UUIDS[:1], **request_fields)[0] == nodes


@pytest.mark.parametrize(
    ("vm_state", "nodes"), [("active", None), ("building", ["node-h1"]), (None, ["node-h1"])]
)
def test_what_an_instance_that_moves_has_is_no_answer(vm_state, nodes):
    known = TrackedInstance(UUIDS[0], "h2", vm_state=vm_state)
    other = TrackedInstance(UUIDS[1], "h2", vm_state="active")
    assert answered([on("node-h1")], UUIDS[:1], instances=[known, other])[0] == nodes
