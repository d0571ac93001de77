"""(allocations of the instances of a request) -> it was answered before, or not."""

from __future__ import annotations

import contextlib
import json
from types import SimpleNamespace

import pytest

from scheduler import objects
from scheduler.claims.placement.allocating import Allocating, Requester
from scheduler.claims.placement.client import PlacementClient
from scheduler.claims.placement.earlier import Earlier, Repeated, Work
from scheduler.hosts.books import TrackedInstance
from tests.builders import a_fleet, a_request
from tests.unit.claims.placement.test_calls import a_placement

UUIDS = ["f4a0f8c0-0000-4000-8000-000000000001", "f4a0f8c0-0000-4000-8000-000000000002"]
CPU = {"VCPU": 1}
NOTHING = (200, {"allocations": {}})


def on(*providers, resources=CPU):
    """The answer to what an instance has: that, on each of *providers*."""
    found = {name: {"generation": 3, "resources": resources} for name in providers}
    return 200, {"allocations": found}


def selection(host):
    return objects.Selection(service_host=host, nodename="n", compute_node_uuid=f"node-{host}")


def work_on(uuids, **request):
    """A request for *uuids*, in a fleet in which node-h1, node-h2 … are those of H1, H2 …"""
    known = {f"node-h{number}": f"H{number}" for number in range(1, 5)}

    def selection_on(provider):
        host = known.get(provider)
        return host and objects.Selection(service_host=host, compute_node_uuid=provider)

    attempt = SimpleNamespace(
        instance_uuids=uuids, spec=a_request(**request), selection_on=selection_on
    )
    return Work(attempt, Requester("p", "u", "req-1"))


def asked(answers, work, selections=(), waits=1, instances=(), **how):
    """The answer found, the paths asked for, and the waits."""
    table = a_fleet({}, {})
    for instance in instances:
        table.put_instance(instance.host, instance.uuid, instance)
    manager = SimpleNamespace(lock=contextlib.nullcontext(), table=table)
    waited = []
    with a_placement(*answers) as (server, conf):
        allocating = Allocating(PlacementClient.from_conf(conf), waited.append)
        found = Earlier(allocating, manager).answer(work, selections, waits, **how)
    assert all(call[2]["x-openstack-request-id"] == "req-1" for call in server.calls)
    hosts = None if found is None else [[each.service_host for each in row] for row in found]
    return hosts, [call[1].rpartition("/")[2] for call in server.calls], waited, found


@pytest.mark.parametrize(
    ("answers", "waits", "hosts", "calls"),
    [
        pytest.param([on("node-h1"), on("node-h2")], 1, [["H1"], ["H2"]], UUIDS, id="all"),
        pytest.param([on("disk", "node-h2"), on("node-h2")], 1, [["H2"]] * 2, UUIDS, id="a tree"),
        pytest.param([NOTHING], 3, None, UUIDS[:1], id="none"),
        pytest.param([(200, {})], 3, None, UUIDS[:1], id="none in other words"),
        pytest.param([on("disk"), on("disk")], 3, None, UUIDS, id="on no host that is known"),
        pytest.param([on("node-h1"), NOTHING] * 2, 2, None, UUIDS * 2, id="some, to the end"),
        pytest.param(
            [on("node-h1"), NOTHING, on("node-h1"), on("node-h3")],
            *(3, [["H1"], ["H3"]], UUIDS * 2),
            id="some, and soon all",
        ),
        pytest.param([], 0, None, [], id="no look"),
    ],
)
def test_allocations_of_all_instances_are_an_answer(answers, waits, hosts, calls):
    found, asked_for, waited, _answer = asked(answers, work_on(UUIDS), waits=waits)

    assert (found, asked_for) == (hosts, calls)
    assert waited == list(range(len([uuid for uuid in calls if uuid == UUIDS[0]])))


@pytest.mark.parametrize(
    ("answers", "hosts"),
    [
        pytest.param([NOTHING, on("node-h1")], [["H1"]], id="soon"),
        pytest.param([NOTHING] * 3, None, id="never"),
    ],
)
def test_who_is_known_to_be_at_it_is_waited_for(answers, hosts):
    found, _asked_for, waited, _answer = asked(answers, work_on(UUIDS[:1]), waits=3, is_at_it=True)
    assert (found, waited) == (hosts, list(range(len(answers))))


def test_instances_without_names_have_no_answer():
    assert asked([], work_on([]), waits=3)[:3] == (None, [], [])


@pytest.mark.parametrize(
    ("request_fields", "hosts"),
    [
        ({}, [["H1"]]),
        ({"ignore_hosts": ["h1"]}, None),
        ({"ignore_hosts": ["h2"]}, [["H1"]]),
        ({"tried": [("h1", "n")]}, None),
        ({"tried": [("h9", "n"), ("H1", "n")]}, None),
        ({"tried": [("h9", "n")]}, [["H1"]]),
        ({"tried": []}, [["H1"]]),
    ],
)
def test_a_host_that_the_request_rules_out_is_no_answer(request_fields, hosts):
    found = asked([on("node-h1")], work_on(UUIDS[:1], **request_fields))

    assert found[0] == hosts


@pytest.mark.parametrize(
    ("vm_state", "hosts"), [("active", None), ("building", [["H1"]]), (None, [["H1"]])]
)
def test_what_an_instance_that_moves_has_is_no_answer(vm_state, hosts):
    known = TrackedInstance(UUIDS[0], "h2", vm_state=vm_state)
    other = TrackedInstance(UUIDS[1], "h2", vm_state="active")

    found = asked([on("node-h1")], work_on(UUIDS[:1]), instances=[known, other])

    assert found[0] == hosts


def test_alternates_are_those_of_the_decision_without_hosts_that_are_taken():
    decided = [
        [selection("h4"), selection("h1"), selection("h3")],
        [selection("h4"), selection("h2"), selection("h4")],
    ]

    found = asked([on("node-h1"), on("node-h2")], work_on(UUIDS), selections=decided)

    assert found[0] == [["H1", "h3"], ["H2", "h4"]]


@pytest.mark.parametrize(
    ("offered", "given"),
    [
        ({"VCPU": 1}, {"allocations": {"node-h1": {"resources": CPU}}, "mappings": {"": ["x"]}}),
        ({"VCPU": 2}, {"allocations": {"node-h1": {"resources": CPU}}}),
    ],
)
def test_what_was_claimed_is_said_as_it_was_offered(offered, given):
    work = work_on(UUIDS[:1])
    one = {"allocations": {"node-h1": {"resources": offered}}, "mappings": {"": ["x"]}}
    work.offers.of_node["node-h1"] = [{"allocations": {}}, one]

    [[chosen]] = asked([on("node-h1")], work)[3]

    assert json.loads(chosen.allocation_request) == given
    assert chosen.allocation_request_version == "1.36"


def test_what_is_known_of_a_request_on_its_way():
    work = work_on(UUIDS)
    work.held = {"u1": ("node-h1", {}), "u2": ("node-h2", {}), "u3": ("node-h1", {})}
    work.offers.of_node.update({"node-h1": [], "node-h2": []})
    work.room["node-h2"] = 1

    assert [work.on(f"node-h{number}") for number in (1, 2, 3)] == [2, 1, 0]
    assert work.rooms() == {"node-h1": None, "node-h2": 1}
    repeated = Repeated([[selection("h1")]])
    assert (str(repeated), len(repeated.answer)) == ("the request was answered before", 1)
