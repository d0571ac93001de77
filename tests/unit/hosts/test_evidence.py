"""(terms of a reservation, row of the instance, report of the host) -> over, and why."""

from __future__ import annotations

import datetime
from types import SimpleNamespace

import pytest

from scheduler.hosts import evidence
from scheduler.hosts.evidence import End, Terms
from tests.builders import an_instance_row

CREATED, EXPIRES = 1000.0, 1120.0
BUILD = Terms("h1", "n1", None, 7, CREATED, EXPIRES)
MOVE = BUILD._replace(source_host="h0")
RESIZE = BUILD._replace(source_host="h1")


def row(host="h1", updated_at=1010.0, **columns):
    return an_instance_row("u1", host, **{"updated_at": updated_at, **columns})


def building(task_state=None, host="h1", **columns):
    return row(host, vm_state="building", task_state=task_state, **columns)


@pytest.mark.parametrize(
    ("terms", "instance", "end"),
    [
        pytest.param(BUILD, None, None, id="nobody has heard of it"),
        pytest.param(BUILD, row(deleted=3), End.DELETED, id="deleted"),
        pytest.param(BUILD, building(host=None), None, id="nobody builds it yet"),
        pytest.param(BUILD, building(), None, id="its host has it"),
        pytest.param(BUILD, building("scheduling"), None, id="not counted by that task"),
        pytest.param(BUILD, building("networking"), End.REPORTED, id="counted by networking"),
        pytest.param(BUILD, building("block_device_mapping"), End.REPORTED, id="counted by disks"),
        pytest.param(BUILD, building("spawning"), End.REPORTED, id="counted by spawning"),
        pytest.param(BUILD, row(vm_state="active"), End.REPORTED, id="runs"),
        pytest.param(BUILD, row(vm_state=None), None, id="no state yet"),
        pytest.param(BUILD, row(vm_state="shelved"), None, id="shelved"),
        pytest.param(BUILD, row(vm_state="shelved_offloaded"), None, id="off its host"),
        pytest.param(BUILD, row(node="n1"), End.REPORTED, id="runs on the node"),
        pytest.param(BUILD, row(node="n2"), None, id="another node of the host"),
        pytest.param(BUILD, row("h2"), End.ELSEWHERE, id="runs elsewhere"),
        pytest.param(MOVE, row("h0", 1.0), None, id="has not left"),
        pytest.param(MOVE, row(None, 1.0), None, id="is nowhere"),
        pytest.param(MOVE, row("h2"), End.ELSEWHERE, id="went elsewhere"),
        pytest.param(BUILD, row(None, vm_state="error"), End.FAILED, id="failed"),
        pytest.param(BUILD, row(None, 1.0, vm_state="error"), End.FAILED, id="failed before"),
        pytest.param(MOVE, row("h0", 998.0, vm_state="error"), End.FAILED, id="just failed there"),
        pytest.param(MOVE, row("h0", 997.9, vm_state="error"), None, id="had failed there before"),
        pytest.param(MOVE, row("h0", 1001.0, vm_state="active"), None, id="no failure"),
    ],
)
def test_what_the_row_of_the_instance_says(terms, instance, end):
    assert evidence.end_of(terms, instance, float("-inf"), CREATED + 1) is end


@pytest.mark.parametrize(
    ("terms", "instance", "reported_at", "end"),
    [
        pytest.param(MOVE, row(), 1012.0, None, id="the report may be older"),
        pytest.param(MOVE, row(), 1012.1, End.REPORTED, id="a report since"),
        pytest.param(MOVE, row(instance_type_id=6), 1012.1, End.REPORTED, id="flavor elsewhere"),
        pytest.param(RESIZE, row(), 1012.0, None, id="resized in place, older report"),
        pytest.param(RESIZE, row(), 1012.1, End.REPORTED, id="resized in place"),
        pytest.param(RESIZE, row(instance_type_id=6), 9999.0, None, id="not resized yet"),
        pytest.param(BUILD, row(), float("-inf"), End.REPORTED, id="a build needs no report"),
    ],
)
def test_what_the_report_of_the_host_says(terms, instance, reported_at, end):
    assert evidence.end_of(terms, instance, reported_at, CREATED + 1) is end


def test_a_row_that_was_never_updated_counts_from_its_creation():
    created_at = datetime.datetime.fromtimestamp(1010, datetime.UTC).replace(tzinfo=None)
    instance = row()
    instance.updated_at, instance.created_at = None, created_at

    assert evidence.end_of(MOVE, instance, 1012.0, CREATED) is None
    assert evidence.end_of(MOVE, instance, 1012.1, CREATED) is End.REPORTED


@pytest.mark.parametrize(
    ("instance", "now", "end"),
    [
        (None, EXPIRES, None),
        (None, EXPIRES + 0.1, End.EXPIRED),
        (building(), EXPIRES + 0.1, End.EXPIRED),
        (row("h2"), EXPIRES + 0.1, End.ELSEWHERE),
    ],
)
def test_a_reservation_expires(instance, now, end):
    assert evidence.end_of(BUILD, instance, float("-inf"), now) is end


def test_the_terms_of_a_claim():
    epoch = datetime.datetime(1970, 1, 1)
    claim = SimpleNamespace(
        source_host="h0",
        flavor_id=7,
        created_at=epoch + datetime.timedelta(seconds=CREATED),
        expires_at=epoch + datetime.timedelta(seconds=EXPIRES),
    )

    assert evidence.terms_of(claim, ("h1", "n1")) == MOVE
