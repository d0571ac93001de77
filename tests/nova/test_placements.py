"""Nova's client asks the scheduler: placements, alternates, refusals, older forms."""

from __future__ import annotations

from typing import Any

import pytest

from tests.nova.deployed import Deployed, a_uuid
from tests.nova.driver import NovaError

CELL1 = ("a1", "a2", "a3", "a4")
CELL2 = ("b1", "b2")
IMPOSSIBLE: dict[str, dict[str, Any]] = {
    "more memory than a host has": {"flavor": {"memory_mb": 10**6}},
    "a zone that is not there": {"zone": "nowhere"},
    "hosts that are ignored": {"ignore_hosts": [*CELL1, *CELL2]},
    "a host that is not there": {"force_hosts": ["nobody"]},
    "more servers than hosts apart": {"count": 7, "policy": "anti-affinity"},
}


@pytest.fixture(scope="module")
def fleet(world: Deployed) -> Deployed:
    """Four hosts in one cell, two in the other; the first two are in the zone east."""
    for cell, hosts in (("cell1", CELL1), ("cell2", CELL2)):
        for host in hosts:
            world.nova.do("fleet.add_host", cell=cell, name=host)
    world.databases.manage("cell_v2", "discover_hosts", "--strict")
    world.add_aggregate("east", {"availability_zone": "east"}, *CELL1[:2])
    return world


def test_the_service_answers(fleet: Deployed) -> None:
    assert fleet.nova.do("calls.ping", text="who") == {"service": "scheduler", "arg": "who"}


def test_every_server_gets_a_host_and_alternates(fleet: Deployed) -> None:
    answered = fleet.select(count=3, alternates=True)
    assert len(answered) == 3
    chosen = {selections[0]["host"] for selections in answered}
    for first, *others in answered:
        in_cell = CELL1 if first["host"] in CELL1 else CELL2
        left = set(in_cell) - chosen
        assert {each["host"] for each in others} <= left
        assert len(others) == min(2, len(left))


def test_a_selection_names_cell_node_and_zone(fleet: Deployed) -> None:
    cells = {name: fleet.nova.do("fleet.cell_uuid", name=name) for name in fleet.databases.cells}
    ((east,),) = fleet.select(zone="east", force_hosts=["a1"])
    ((other,),) = fleet.select(force_hosts=["b1"])
    for selection, name, zone in ((east, "cell1", "east"), (other, "cell2", "nova")):
        assert (selection["cell"], selection["zone"]) == (cells[name], zone)
        assert selection["node"] == selection["host"]
        assert selection["retry"]["hosts"] == [[selection["host"], selection["node"]]]
        assert selection["allocation_request"] == "null"


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_a_refusal_is_the_exception_that_nova_catches(what: str, fleet: Deployed) -> None:
    demand = dict(IMPOSSIBLE[what])
    if "policy" in demand:
        demand["group"] = fleet.nova.do("fleet.add_group", policy=demand.pop("policy"))
    with pytest.raises(NovaError) as refused:
        fleet.select(**demand)
    assert (refused.value.is_no_valid_host, refused.value.kind) == (True, "NoValidHost_Remote")
    assert refused.value.text.startswith(
        "No valid host was found. There are not enough hosts available."
    )
    assert refused.value.kwargs == {
        "reason": "There are not enough hosts available.",
        "code": "500",
    }


@pytest.mark.parametrize("cap", ["4.5", "4.4", "4.3", "4.2", "pike", "newton", "liberty"])
def test_older_forms_are_answered(cap: str, fleet: Deployed) -> None:
    """What Nova's client sends when it is told that the scheduler is old."""
    fleet.nova.do("calls.configure", group="upgrade_levels", option="scheduler", value=cap)
    demand = {"uuids": [a_uuid(), a_uuid()], "zone": "east", "image": {"hw_architecture": "x86_64"}}
    try:
        answered = fleet.nova.do("calls.select", demand=demand, returns_objects=False)
    finally:
        fleet.nova.do("calls.configure", group="upgrade_levels", option="scheduler", value=None)
    assert len(answered) == 2
    assert {each["host"] for each in answered} <= {"a1", "a2"}
    assert [each["nodename"] for each in answered] == [each["host"] for each in answered]
