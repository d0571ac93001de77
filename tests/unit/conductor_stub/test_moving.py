"""Servers that change their host: (what is asked, what is found) -> casts, rows and errors."""

from contextlib import nullcontext

import pytest

from scheduler import errors
from scheduler.rpc.context import RequestContext
from tests.unit.conductor_stub import builders
from tests.unit.conductor_stub.driving import call, fault, request_spec, tried

NO_VALID_HOST = errors.NoValidHost(reason="There are not enough hosts available.")
BIG = builders.flavor(id=2, name="big", memory_mb=8192)
MIGRATION = {"live": False, "rebuild": False, "block_migration": None, "disk_over_commit": None}
RUNNING = {"vm_state": "active", "task_state": "resize_prep", "host": "old", "node": "old"}
SHELVED = {"vm_state": "shelved_offloaded", "task_state": "unshelving", "host": None, "node": None}


def running(conductor, **changes):
    (instance,) = conductor.asked_for(mapped=False, **{**RUNNING, **changes})
    return instance


def answer(conductor, *names):
    """Have the scheduler name these hosts, or none."""
    hosts = [builders.selection(name) for name in names]
    conductor.scheduler.answer = [hosts] if hosts else NO_VALID_HOST
    return hosts


def ask(conductor, method, **arguments):
    context = RequestContext(user_id="user", project_id="project")
    call(getattr(conductor.manager, method), context, **arguments)


def resize(conductor, instance, flavor=BIG, properties=None, **more):
    hint = {"filter_properties": {"ignore_hosts": ["old"]} if properties is None else properties}
    given = {**MIGRATION, "instance": instance, "scheduler_hint": hint, "flavor": flavor, **more}
    ask(conductor, "migrate_server", **given)


@pytest.mark.parametrize("given_as_object", [True, False], ids=["today", "Newton"])
def test_a_resize_asks_with_the_new_flavor_and_tells_the_host(conductor, given_as_object):
    instance = running(conductor)
    _, alternate = answer(conductor, "a", "b")
    spec = request_spec(instance, force_hosts=["old"]) if given_as_object else None

    resize(conductor, instance, request_spec=spec)

    (asked,) = conductor.scheduler.asked
    assert (asked.flavor.name, asked.ignore_hosts, asked.force_hosts) == ("big", ["old"], None)
    assert (asked.retry.num_attempts, asked.instance_uuid) == (1, instance.uuid)
    ((host, cast),) = conductor.compute.sent["prep_resize"]
    assert (host, cast.node, cast.flavor.name, cast.host_list) == ("a", "a", "big", [alternate])
    assert cast.filter_properties["retry"] == {"num_attempts": 1, "hosts": [["a", "a"]]}
    assert cast.filter_properties["limits"] == {"memory_mb": 4096}
    assert cast.legacy_spec["instance_type"]["memory_mb"] == 8192
    assert spec is None or spec.flavor.name == "m1.small", "the caller's request is not changed"


@pytest.mark.parametrize(
    ("flavor", "vm_state", "reason"),
    [
        (BIG, "stopped", "No valid host found for resize"),
        (builders.flavor(), None, "No valid host found for cold migrate"),
    ],
)
def test_without_a_host_a_server_stays_as_it_is(conductor, flavor, vm_state, reason):
    instance, left_in = running(conductor, vm_state=vm_state), vm_state or "active"
    answer(conductor)
    with pytest.raises(errors.NoValidHost, match=reason):
        resize(conductor, instance, flavor)
    row = conductor.row(instance)
    assert (row.vm_state, row.task_state, row.host) == (left_in, None, "old")
    assert fault(conductor, instance).message == str(NO_VALID_HOST)
    (told,) = conductor.told.errors
    assert (told.task, told.state) == ("compute_task.migrate_server", left_in)


@pytest.mark.parametrize(
    ("attempts", "names", "goes_to"), [(1, "ab", ["a"]), (1, "", []), (3, "a", [])]
)
def test_a_move_that_failed_goes_on_with_the_alternates(conductor, attempts, names, goes_to):
    instance, left = running(conductor), [builders.selection(name) for name in names]
    refusal = pytest.raises(errors.NoValidHost, match="No valid host found for resize")
    with nullcontext() if goes_to else refusal:
        spec = request_spec(instance)
        resize(conductor, instance, BIG, tried(attempts), request_spec=spec, host_list=left)
    assert conductor.scheduler.asked == []
    assert [host for host, _ in conductor.compute.sent["prep_resize"]] == goes_to


@pytest.mark.parametrize("changes", [{"live": True}, {"rebuild": True}, {"flavor": None}])
def test_what_is_not_done_here_is_refused_by_name(conductor, changes):
    with pytest.raises(errors.InvalidRequest, match="only resizes and cold migrations"):
        resize(conductor, running(conductor), **changes)


@pytest.mark.parametrize(
    ("row", "names", "raises", "left_in", "goes_to"),
    [
        pytest.param({}, "ab", None, ("shelved_offloaded", "unshelving"), ["a"], id="a host"),
        pytest.param({}, "", None, ("shelved_offloaded", None), [], id="no host: stays"),
        pytest.param(
            *({"vm_state": "active", "host": "h"}, "ab", "instance.vm_state"),
            *(("active", None), []),
            id="is on a host",
        ),
    ],
)
def test_unshelving(conductor, caplog, row, names, raises, left_in, goes_to):
    instance = running(conductor, **{**SHELVED, **row})
    answer(conductor, *names)
    spec = request_spec(instance, force_hosts=["gone"])
    with pytest.raises(errors.InvalidRequest, match=raises) if raises else nullcontext():
        ask(conductor, "unshelve_instance", instance=instance, request_spec=spec)
    assert [each.force_hosts for each in conductor.scheduler.asked] == [None] * (not raises)
    assert [host for host, _cast in conductor.compute.sent["unshelve_instance"]] == goes_to
    for _host, cast in conductor.compute.sent["unshelve_instance"]:
        assert (cast.node, cast.filter_properties["limits"]) == ("a", {"memory_mb": 4096})
    assert (conductor.row(instance).vm_state, conductor.row(instance).task_state) == left_in
    assert ("No valid host found for unshelve instance" in caplog.text) is (names == "")


@pytest.mark.parametrize(
    ("host", "names", "goes_to", "node"),
    [(None, "a", "a", "a"), ("given", "a", "given", None), (None, "", None, None)],
)
def test_rebuilding(conductor, host, names, goes_to, node):
    instance = running(conductor, task_state="rebuilding")
    answer(conductor, *names)
    images = {"orig_image_ref": "i", "image_ref": "i", "orig_sys_metadata": {}, "bdms": None}
    given = {"injected_files": [], "new_pass": "s3cret", "recreate": True}
    given |= {**images, "on_shared_storage": False, "host": host, "instance": instance}
    with nullcontext() if goes_to else pytest.raises(errors.NoValidHost):
        ask(conductor, "rebuild_instance", request_spec=request_spec(instance), **given)
    asks = [each.ignore_hosts for each in conductor.scheduler.asked]
    assert asks == ([] if host else [["old"]])
    if goes_to:
        ((told, cast),) = conductor.compute.sent["rebuild_instance"]
        assert (told, cast.scheduled_node, cast.new_pass) == (goes_to, node, "s3cret")
    else:
        row, (told,) = conductor.row(instance), conductor.told.errors
        assert (row.vm_state, row.task_state) == ("active", None)
        assert (told.task, told.state) == ("compute_task.rebuild_server", "active")
