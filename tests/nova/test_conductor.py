"""Nova's conductor boots servers: it asks the scheduler and orders the compute host to build."""

from typing import Any

import pytest

from tests.nova.deployed import Deployed, a_uuid
from tests.waiting import wait_until

HOSTS = {"k1": "cell1", "k2": "cell1", "k3": "cell1", "k4": "cell2"}


@pytest.fixture(scope="module")
def cloud(world) -> Deployed:
    """Hosts in two cells, with Nova's code in the place of their compute services."""
    world.nova.do("conducting.all_cells_on", bus=world.bus)
    for host, cell in HOSTS.items():
        world.add_hosts(cell, host)
    world.nova.do("listening.serve_compute", hosts=list(HOSTS))
    return world


def orders(cloud: Deployed, uuids: list[str]) -> list[dict[str, Any]]:
    """The orders to build those servers, once they are all there."""

    def found() -> list[dict[str, Any]]:
        return [each for each in cloud.nova.do("listening.built") if each["uuid"] in uuids]

    return wait_until(lambda: found() if len(found()) == len(uuids) else [])


def test_the_chosen_host_is_ordered_to_build(cloud):
    uuids = [a_uuid() for _ in range(3)]
    cloud.nova.do("conducting.boot", demand={"uuids": uuids, "destination": {"cell": "cell1"}})
    for order in orders(cloud, uuids):
        assert HOSTS[order["node"]] == "cell1"
        assert (order["is_selection"], order["limits"]) == (True, "dict")
        assert {HOSTS[each] for each in order["alternates"]} <= {"cell1"}
        assert order["retry"]["hosts"] == [[order["node"], order["node"]]]
        assert cloud.nova.do("conducting.server", uuid=order["uuid"]) == {
            "cell": "cell1",
            "state": "building",
            "zone": "nova",
        }


def test_a_server_without_host_is_an_error_in_cell0(cloud):
    uuid = a_uuid()
    demand = {"uuids": [uuid], "flavor": {"memory_mb": 10**6}}
    cloud.nova.do("conducting.boot", demand=demand)
    server = cloud.nova.do("conducting.server", uuid=uuid)
    assert (server["cell"], server["state"]) == ("cell0", "error")
