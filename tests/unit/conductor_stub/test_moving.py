"""Servers that change their host: (what is asked, what is found) -> casts, rows and errors."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from oslo_messaging.rpc import dispatcher

from scheduler import errors
from scheduler.rpc.context import RequestContext
from tests.unit.conductor_stub import builders
from tests.unit.conductor_stub.driving import fault, request_spec, tried

CONTEXT = RequestContext(user_id="user", project_id="project")
NO_VALID_HOST = errors.NoValidHost(reason="There are not enough hosts available.")
BIG = builders.flavor(id=2, name="big", memory_mb=8192)
MIGRATION = {"live": False, "rebuild": False, "block_migration": None, "disk_over_commit": None}
RUNNING = {"vm_state": "active", "task_state": "resize_prep", "host": "old", "node": "old"}


def running(conductor, **changes):
    (instance,) = conductor.asked_for(mapped=False, **{**RUNNING, **changes})
    return instance


def resize(conductor, instance, flavor=BIG, properties=None, spec=None, host_list=None):
    hint = {"filter_properties": {"ignore_hosts": ["old"]} if properties is None else properties}
    given = {"instance": instance, "scheduler_hint": hint, "flavor": flavor}
    more = {"request_spec": spec, "host_list": host_list}
    _call(conductor.manager.migrate_server, **MIGRATION, **given, **more)


def _call(method, **arguments):
    """Raise what the caller is answered with."""
    try:
        method(CONTEXT, **arguments)
    except dispatcher.ExpectedException as expected:
        raise expected.exc_info[1] from None


@pytest.mark.parametrize("given_as_object", [True, False], ids=["today", "Newton"])
def test_a_resize_asks_with_the_new_flavor_and_tells_the_host(conductor, given_as_object):
    instance = running(conductor)
    alternates = [builders.selection("a"), builders.selection("b")]
    conductor.scheduler.answer = [alternates]
    spec = request_spec(instance, force_hosts=["old"]) if given_as_object else None

    resize(conductor, instance, spec=spec)

    (asked,) = conductor.scheduler.asked
    assert (asked.flavor.name, asked.ignore_hosts, asked.force_hosts) == ("big", ["old"], None)
    assert (asked.retry.num_attempts, asked.instance_uuid) == (1, instance.uuid)
    ((host, cast),) = conductor.compute.resizes
    assert (host, cast.node, cast.flavor.name) == ("a", "a", "big")
    assert cast.host_list == alternates[1:]
    assert cast.filter_properties["retry"] == {"num_attempts": 1, "hosts": [["a", "a"]]}
    assert cast.filter_properties["limits"] == {"memory_mb": 4096}
    assert cast.legacy_spec["instance_type"]["memory_mb"] == 8192
    assert spec is None or spec.flavor.name == "m1.small", "the caller's request is not changed"


@pytest.mark.parametrize(
    ("flavor", "vm_state", "left_in", "reason"),
    [
        (BIG, "active", "active", "No valid host found for resize"),
        (BIG, "stopped", "stopped", "No valid host found for resize"),
        (builders.flavor(), None, "active", "No valid host found for cold migrate"),
    ],
)
def test_without_a_host_a_server_stays_as_it_is(conductor, flavor, vm_state, left_in, reason):
    instance = running(conductor, vm_state=vm_state)
    conductor.scheduler.answer = NO_VALID_HOST

    with pytest.raises(errors.NoValidHost, match=reason):
        resize(conductor, instance, flavor)

    row = conductor.row(instance)
    assert (row.vm_state, row.task_state, row.host) == (left_in, None, "old")
    assert fault(conductor, instance).message == str(NO_VALID_HOST)
    (told,) = conductor.told.errors
    assert (told.task, told.state) == ("compute_task.migrate_server", left_in)


@pytest.mark.parametrize(
    ("properties", "host_list", "goes_to"),
    [
        pytest.param(tried(1), ["a", "b"], "a", id="the next alternate"),
        pytest.param(tried(1), [], None, id="none left"),
        pytest.param(tried(3), ["a"], None, id="fourth attempt"),
    ],
)
def test_a_move_that_failed_goes_on_with_the_alternates(conductor, properties, host_list, goes_to):
    instance = running(conductor)
    alternates = [builders.selection(name) for name in host_list]

    refusal = pytest.raises(errors.NoValidHost, match="No valid host found for resize")
    with nullcontext() if goes_to else refusal:
        resize(conductor, instance, BIG, properties, request_spec(instance), alternates)
    assert conductor.scheduler.asked == []
    assert [host for host, _ in conductor.compute.resizes] == ([goes_to] if goes_to else [])


@pytest.mark.parametrize(
    "changes",
    [{"live": True}, {"rebuild": True}, {"flavor": None}],
    ids=lambda each: next(iter(each)),
)
def test_what_is_not_done_here_is_refused_by_name(conductor, changes):
    given = {"instance": running(conductor), "scheduler_hint": {}, "flavor": BIG}
    arguments = {**MIGRATION, **given, **changes}
    with pytest.raises(errors.InvalidRequest, match="only resizes and cold migrations"):
        _call(conductor.manager.migrate_server, **arguments)


@pytest.mark.parametrize(
    ("row", "answer", "raises", "left_in", "goes_to"),
    [
        pytest.param({}, "a", None, ("shelved_offloaded", "unshelving"), ["a"], id="a host"),
        pytest.param({}, None, None, ("shelved_offloaded", None), [], id="no host: stays"),
        pytest.param(
            {"vm_state": "active", "host": "h"},
            "a",
            "instance.vm_state",
            ("active", None),
            [],
            id="is on a host",
        ),
    ],
)
def test_unshelving(conductor, caplog, row, answer, raises, left_in, goes_to):
    shelved = {"vm_state": "shelved_offloaded", "task_state": "unshelving"}
    instance = running(conductor, **{**shelved, "host": None, "node": None, **row})
    alternates = [builders.selection("a"), builders.selection("b")]
    conductor.scheduler.answer = [alternates] if answer else NO_VALID_HOST
    spec = request_spec(instance, force_hosts=["gone"])
    may_raise = pytest.raises(errors.InvalidRequest, match=raises) if raises else nullcontext()
    with may_raise:
        _call(conductor.manager.unshelve_instance, instance=instance, request_spec=spec)
    assert [each.force_hosts for each in conductor.scheduler.asked] == [None] * (not raises)
    assert [host for host, _cast in conductor.compute.unshelved] == goes_to
    for _host, cast in conductor.compute.unshelved:
        assert (cast.node, cast.filter_properties["limits"]) == ("a", {"memory_mb": 4096})
    assert (conductor.row(instance).vm_state, conductor.row(instance).task_state) == left_in
    assert ("No valid host found for unshelve instance" in caplog.text) is (answer is None)


@pytest.mark.parametrize(
    ("host", "goes_to", "node", "asks"),
    [
        (None, "a", "a", 1),
        ("given", "given", None, 0),
        ("old", "old", None, 0),
        (None, None, None, 1),
    ],
)
def test_rebuilding(conductor, host, goes_to, node, asks):
    instance = running(conductor, task_state="rebuilding")
    conductor.scheduler.answer = [[builders.selection("a")]] if goes_to else NO_VALID_HOST
    images = {"orig_image_ref": "i", "image_ref": "i", "orig_sys_metadata": {}, "bdms": None}
    given = {"injected_files": [], "new_pass": "s3cret", "recreate": True}
    arguments = {**images, **given, "on_shared_storage": False, "host": host, "instance": instance}
    with nullcontext() if goes_to else pytest.raises(errors.NoValidHost):
        spec = request_spec(instance)
        _call(conductor.manager.rebuild_instance, request_spec=spec, **arguments)
    assert [each.ignore_hosts for each in conductor.scheduler.asked] == [["old"]] * asks
    if goes_to:
        ((told, cast),) = conductor.compute.rebuilt
        assert (told, cast.scheduled_node, cast.new_pass) == (goes_to, node, "s3cret")
    else:
        row, (told,) = conductor.row(instance), conductor.told.errors
        assert (row.vm_state, row.task_state) == ("active", None)
        assert (told.task, told.state) == ("compute_task.rebuild_server", "active")
