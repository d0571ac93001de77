"""Which check fails by which fault."""

from types import SimpleNamespace

import pytest

from scheduler import errors
from scheduler.daemon.health import Status, WorkerHealth, look_when_idle
from scheduler.daemon.worker_table import Stage
from scheduler.db.cells import CellHealth
from scheduler.rpc.in_flight import InFlightRequests


def hosts_with(**fields):
    """A host manager that is well, unless told otherwise."""
    cells = fields.pop("cells", [])
    well = {"state_age_seconds": 2.0, "is_failing": False, "require_state": lambda: None}
    return SimpleNamespace(**{**well, "cell_health": lambda: cells, **fields})


def too_old():
    raise errors.StateUnavailable(reason="the last state read is 61 s old")


def a_cell(*, is_left_out):
    return CellHealth("u1", "east", is_left_out)


def health(
    hosts=None,
    stage=Stage.SERVING,
    *,
    needs_database=False,
    in_flight=None,
    refused_reload=False,
    **consumer,
):
    claims = SimpleNamespace(needs_database=needs_database, problem=None)
    driver = SimpleNamespace(host_manager=hosts or hosts_with(), claims=claims)
    serving = {"is_listening": True, "is_consuming": True, **consumer}
    return WorkerHealth(
        in_flight or InFlightRequests(),
        stuck_seconds=30.0,
        stage=lambda: stage,
        manager=lambda: SimpleNamespace(driver=driver),
        consumer=lambda: SimpleNamespace(**serving),
        refused_reload=lambda: refused_reload,
    )


def starting():
    return WorkerHealth(InFlightRequests(), 30.0, lambda: Stage.STARTING)


def not_passing(checks):
    return {check.name: check.status for check in checks if check.status is not Status.PASS}


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (health(), {}),
        (starting(), {"stage": "fail", "snapshot": "fail", "consumer": "fail"}),
        (health(stage=Stage.STOPPING), {"stage": "fail"}),
        (health(stage=Stage.RELOADING), {}),
        (health(hosts_with(state_age_seconds=None)), {"snapshot": "fail"}),
        (health(hosts_with(is_failing=True)), {"state": "warn"}),
        (health(hosts_with(is_failing=True, require_state=too_old)), {"state": "fail"}),
        (
            health(hosts_with(is_failing=True), needs_database=True),
            {"state": "fail", "claims": "warn"},
        ),
        (health(hosts_with(state_age_seconds=9e9)), {}),
        (health(hosts_with(cells=[a_cell(is_left_out=False)])), {}),
        (health(hosts_with(cells=[a_cell(is_left_out=True)])), {"cells": "warn"}),
        (health(is_consuming=False), {"consumer": "fail"}),
        (health(refused_reload=True), {"configuration": "warn"}),
    ],
)
def test_readiness(of, expected):
    assert not_passing(of.readiness()) == expected


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (health(), {}),
        (starting(), {}),
        (health(is_listening=False), {"listener": "fail"}),
        (health(is_listening=False, stage=Stage.STOPPING), {}),
        (health(is_consuming=False), {}),
        (health(hosts_with(is_failing=True, require_state=too_old)), {}),
    ],
)
def test_liveness(of, expected):
    assert not_passing(of.liveness()) == expected


def test_a_request_that_does_not_move():
    now = [0.0]
    in_flight = InFlightRequests(clock=lambda: now[0])
    with in_flight.request("select_destinations"):
        now[0] = 29.0
        assert not_passing(health(in_flight=in_flight).liveness()) == {}
        now[0] = 31.0
        assert not_passing(health(in_flight=in_flight).liveness()) == {"requests": "fail"}
    assert not_passing(health(in_flight=in_flight).liveness()) == {}


def test_messages_name_the_cause():
    failing = hosts_with(is_failing=True, require_state=too_old, state_age_seconds=61.0)
    told = {check.name: check.message for check in health(failing).readiness()}
    assert "61 s old" in told["state"]
    left_out = health(hosts_with(cells=[a_cell(is_left_out=True)])).readiness()
    assert [check.message for check in left_out if check.name == "cells"] == ["left out: east"]


@pytest.mark.parametrize(
    ("age", "reads"), [(None, 0), (89.0, 0), (91.0, 1)], ids=["none", "younger", "older"]
)
def test_the_state_is_looked_at_when_nobody_asks(age, reads):
    told = []

    def refresh():
        told.append("read")
        too_old()  # which is for the checks to tell

    look_when_idle(hosts_with(state_age_seconds=age, refresh=refresh), 60.0)
    assert len(told) == reads
