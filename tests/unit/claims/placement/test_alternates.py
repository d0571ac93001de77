"""What the conductor does with allocations: claim those of an alternate, release, leave a host."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from conductor_stub.alternates import PlacementAlternates
from scheduler import objects
from scheduler.claims.placement.client import Requester
from tests.builders import a_request
from tests.unit.claims.placement.test_calls import (
    CONSUMER,
    FULL,
    NOTHING,
    REQUEST,
    a_placement,
    allocating,
)

OWN = {"user_id": "u", "project_id": "p"}
IDS = {"request_id": "req-1", "global_request_id": "req-0"}


@pytest.mark.parametrize(
    ("context", "spec", "requester"),
    [
        ({}, {}, Requester(None, None, None)),
        ({"request_id": "req-1"}, {}, Requester(None, None, "req-1")),
        ({**OWN, **IDS}, {}, Requester("p", "u", "req-0")),
        (OWN, {"user_id": "u2", "project_id": "p2"}, Requester("p2", "u2", None)),
    ],
)
def test_for_whom_is_claimed(context, spec, requester):
    assert Requester.from_request(SimpleNamespace(**context), a_request(**spec)) == requester


CONTEXT = SimpleNamespace(request_id="req-1", project_id="p", user_id="u")
OWNED = {"project_id": "p0", "user_id": "u0", "consumer_generation": 5}


def alternates_of(conf):
    return PlacementAlternates(allocating(conf)[0])


@pytest.mark.parametrize(
    ("text", "answers", "claimed"),
    [
        pytest.param(None, [], True, id="nothing to claim"),
        pytest.param("null", [], True, id="nothing to claim, in words"),
        pytest.param(json.dumps(REQUEST), [NOTHING, (204, None)], True, id="claimed"),
        pytest.param(json.dumps(REQUEST), [NOTHING, (409, FULL)], False, id="full"),
        pytest.param(json.dumps(REQUEST), [(503, {})], False, id="no answer"),
    ],
)
def test_whether_an_alternate_is_claimed(text, answers, claimed):
    selection = objects.Selection(allocation_request=text, allocation_request_version="1.36")
    with a_placement(*answers) as (server, conf):
        found = alternates_of(conf).claim(CONTEXT, a_request(), CONSUMER, selection)
    assert found is claimed
    assert len(server.calls) == len(answers)


@pytest.mark.parametrize("context", [CONTEXT, SimpleNamespace()])
@pytest.mark.parametrize(("status", "told"), [(204, []), (404, []), (503, [CONSUMER])])
def test_what_is_released(context, status, told, caplog):
    with a_placement((status, None)) as (server, conf):
        alternates_of(conf).release(context, CONSUMER)
    [(method, path, headers, _body)] = server.calls
    assert (method, path) == ("DELETE", f"/allocations/{CONSUMER}")
    assert headers.get("x-openstack-request-id") == getattr(context, "request_id", None)
    assert [CONSUMER for message in caplog.messages if CONSUMER in message] == told


@pytest.mark.parametrize(
    ("held", "calls", "left"),
    [
        pytest.param({}, ["GET"], None, id="nothing"),
        pytest.param({"other": 1}, ["GET"], None, id="not there"),
        pytest.param({"node": 1}, ["GET", "DELETE"], None, id="nowhere else"),
        pytest.param({"node": 1, "other": 2}, ["GET", "GET", "PUT"], {"other": 2}, id="elsewhere"),
    ],
)
def test_an_instance_leaves_a_host(held, calls, left):
    resources = {name: {"resources": {"VCPU": count}} for name, count in held.items()}
    existing = (200, {"allocations": resources, **OWNED})
    answers = [existing if each == "GET" else (204, None) for each in calls]
    with a_placement(*answers) as (server, conf):
        alternates_of(conf).leave(CONTEXT, CONSUMER, "node")
    assert [call[0] for call in server.calls] == calls
    assert all(call[2]["x-openstack-request-id"] == "req-1" for call in server.calls)
    if left is not None:
        body = server.calls[-1][3]
        assert body["allocations"] == {"other": {"resources": {"VCPU": 2}}}
        assert {name: body[name] for name in OWNED} == OWNED


def test_an_instance_that_cannot_leave_is_told(caplog):
    with a_placement((503, {})) as (_server, conf):
        alternates_of(conf).leave(CONTEXT, CONSUMER, "node")
    assert [message for message in caplog.messages if CONSUMER in message and "node" in message]
