"""Nova's client asks for hosts: selections, refusals and older forms."""

import pytest

from tests.nova.deployed import a_uuid
from tests.nova.driver import NovaError

CELL1 = ("a1", "a2", "a3", "a4")
CELL2 = ("b1", "b2")


@pytest.fixture(scope="module")
def fleet(world):
    """Four hosts in one cell, two in the other; the first two are in the zone east."""
    for cell, hosts in (("cell1", CELL1), ("cell2", CELL2)):
        for host in hosts:
            world.nova.do("fleet.add_host", cell=cell, name=host)
    world.databases.manage("cell_v2", "discover_hosts", "--strict")
    world.add_aggregate("east", {"availability_zone": "east"}, *CELL1[:2])
    return world


def test_the_service_answers(fleet):
    assert fleet.nova.do("calls.ping", text="who") == {"service": "scheduler", "arg": "who"}


def test_a_selection_names_cell_node_and_zone(fleet):
    cells = {name: fleet.nova.do("fleet.cell_uuid", name=name) for name in fleet.databases.cells}
    ((east,),) = fleet.select(zone="east", force_hosts=["a1"])
    ((other,),) = fleet.select(force_hosts=["b1"])
    for selection, name, zone in ((east, "cell1", "east"), (other, "cell2", "nova")):
        assert (selection["cell"], selection["zone"]) == (cells[name], zone)
        assert selection["node"] == selection["host"]
        assert selection["retry"]["hosts"] == [[selection["host"], selection["node"]]]
        assert selection["allocation_request"] == "null"


@pytest.mark.parametrize("demand", [{"zone": "nowhere"}, {"flavor": {"memory_mb": 10**6}}])
def test_a_refusal_is_the_exception_that_nova_catches(demand, fleet):
    with pytest.raises(NovaError) as refused:
        fleet.select(**demand)
    assert (refused.value.is_no_valid_host, refused.value.kind) == (True, "NoValidHost_Remote")
    reason = "There are not enough hosts available."
    assert refused.value.text.startswith(f"No valid host was found. {reason}")
    assert refused.value.kwargs == {"reason": reason, "code": "500"}


@pytest.mark.parametrize("cap", ["4.5", "4.4", "4.3", "4.2", "pike", "newton", "liberty"])
def test_older_forms_are_answered(cap, fleet):
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
