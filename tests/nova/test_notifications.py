"""The scheduler's notifications are the ones that Nova itself sends for the same request."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.nova.deployed import Deployed, a_uuid, deployed
from tests.waiting import wait_until

BOTH_FORMS = {
    "DEFAULT": {"host": "controller"},
    "notifications": {"notification_format": "both"},
    "oslo_messaging_notifications": {"driver": "messagingv2"},
}
START = "scheduler.select_destinations.start"
END = "scheduler.select_destinations.end"
DEMANDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "with everything": {
        "flavor": {"extra_specs": {"hw:numa_nodes": "1", "hw:cpu_policy": "shared"}},
        "image": {"hw_architecture": "x86_64", "hw_vif_model": "virtio"},
        "zone": "nova",
        "hints": {"different_host": [a_uuid()]},
        "ignore_hosts": ["nobody"],
        "destination": {"host": "t1", "node": "t1"},
    },
    "in a group, with a device": {
        "policy": "anti-affinity",
        "flavor": {"extra_specs": {"pci_passthrough:alias": "nic:1"}},
    },
    "forced": {"force_hosts": ["t1"], "force_nodes": ["t1"]},
}


@pytest.fixture(scope="module")
def told(nova_databases, rabbitmq, tmp_path_factory) -> Iterator[Deployed]:
    """A world in which both sides send both forms, and one host."""
    folder = tmp_path_factory.mktemp("told")
    with deployed(nova_databases, rabbitmq, folder, of_both=BOTH_FORMS) as world:
        cell = {"cpus": list(range(16)), "memory_mb": 32768}
        device = {"vendor_id": "8086", "product_id": "1520", "numa_node": 0, "count": 8}
        pool = {**device, "dev_type": "type-PCI"}
        world.add_hosts("cell1", "t1", numa_cells=[cell], pci_pools=[pool])
        world.nova.do("listening.start")
        yield world


def heard(world: Deployed, event: str) -> dict[str, dict[str, Any]]:
    """The two forms of that event, by publisher, once both have arrived."""

    def both() -> dict[str, dict[str, Any]]:
        found = {
            each["publisher"]: each["payload"]
            for each in world.nova.do("listening.heard")
            if each["event"] == event
        }
        return found if len(found) == 2 else {}

    return wait_until(both)


@pytest.mark.parametrize("what", DEMANDS)
def test_nova_sends_the_same(what, told):
    demand = {"uuids": [a_uuid()], **DEMANDS[what]}
    if "policy" in demand:
        demand["group"] = told.nova.do("fleet.add_group", policy=demand.pop("policy"))
    told.nova.do("listening.forget")
    told.nova.do("listening.ask", demand=demand)
    ours = heard(told, START)
    assert heard(told, END).keys() == ours.keys()
    told.nova.do("listening.forget")
    told.nova.do("listening.emit")
    novas = heard(told, START)
    assert ours.keys() == novas.keys() == {"scheduler.controller", "nova-scheduler:controller"}
    for publisher, payload in novas.items():
        assert without_dump(ours[publisher]) == without_dump(payload)


def without_dump(payload: dict[str, Any]) -> dict[str, Any]:
    """A payload without what Nova's library dumps with internals, and this project as an object."""
    properties = payload.get("request_spec", {}).get("instance_properties", {})
    for name in ("pci_requests", "numa_topology"):
        properties.pop(name, None)
    return payload
