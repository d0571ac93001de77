"""(claims, instances, hosts) -> what does not agree; cells and devices are in the CLI's tests."""

import datetime
from types import SimpleNamespace

import pytest

from scheduler.claims.audit import Difference, Fleet, differences
from scheduler.db import tables
from scheduler.hosts.host_state import Fitting
from scheduler.semantics import Ratios
from tests.builders import a_conf, an_instance_row

NOW = 1000.0
KEY = ("h1", "n1")
RATIOS = Ratios(cpu=2.0, ram=1.5, disk=1.0)
FITTING = Fitting.from_conf(a_conf())


def at(seconds):
    return datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)


def claim(**columns):
    values = {
        **dict.fromkeys(tables.claims.c.keys()),
        "consumer_uuid": "u1",
        "host": "h1",
        "node": "n1",
        "generation": 1,
        "vcpus": 1,
        "memory_mb": 512,
        "disk_gb": 1,
        "flavor_id": 7,
        "created_at": at(NOW - 10),
        "expires_at": at(NOW + 110),
    }
    return SimpleNamespace(**{**values, **columns})


def node(**columns):
    """A host with 4 CPUs, 4096 MB and 100 GB, of which 1 CPU, 1024 MB and 10 GB are used."""
    values = {
        **dict.fromkeys(tables.compute_nodes.c.keys()),
        "id": 1,
        "host": "h1",
        "hypervisor_hostname": "n1",
        "updated_at": at(NOW - 5),
        "running_vms": 1,
        "vcpus": 4,
        "vcpus_used": 1,
        "memory_mb": 4096,
        "free_ram_mb": 3072,
        "local_gb": 100,
        "local_gb_used": 10,
        "free_disk_gb": 90,
    }
    return SimpleNamespace(**{**values, **columns})


def found(claims=(), instances=(), nodes=None, count=1):
    nodes = [node()] if nodes is None else nodes
    fleet = Fleet({row.uuid: row for row in instances}, {KEY: count}, nodes)
    return differences(claims, fleet, RATIOS, FITTING, NOW)


def waiting(**columns):
    return an_instance_row("u1", None, **{"vm_state": "building", "updated_at": NOW, **columns})


OVER, MOVE = "overbooked", {"source_host": "h0"}
SAID = {
    "no instance": "there is no such instance",
    "no compute node": "there is no such compute node",
    "not closed: reported": "the host reports the instance already",
    "not closed: deleted": "the instance is deleted",
    "not closed: failed": "the instance is in ERROR",
    "not closed: elsewhere": "the instance is on h2",
    "not closed: expired": "expired at 1970-01-01 00:16:39",
}


@pytest.mark.parametrize(
    ("columns", "instance", "kind"),
    [
        ({}, waiting(), None),
        ({"created_at": at(NOW - 60)}, None, None),
        ({"created_at": at(NOW - 61)}, None, "no instance"),
        ({"host": "h9"}, waiting(), "no compute node"),
        ({"node": "n9"}, waiting(), "no compute node"),
        ({}, an_instance_row("u1", "h1", NOW), "not closed: reported"),
        ({}, waiting(deleted=1), "not closed: deleted"),
        ({"memory_mb": 9999}, waiting(deleted=1), "not closed: deleted"),  # takes nothing any more
        ({}, waiting(vm_state="error"), "not closed: failed"),
        ({}, an_instance_row("u1", "h2", NOW), "not closed: elsewhere"),
        ({"created_at": at(0), "expires_at": at(NOW - 1)}, None, "not closed: expired"),
        (MOVE, an_instance_row("u1", "h1", NOW - 7), None),
        (MOVE, an_instance_row("u1", "h1", NOW - 8), "not closed: reported"),  # a report since
    ],
)
def test_claims(columns, instance, kind):
    several = found([claim(**columns)], [instance] if instance else [])

    wanted = [(kind, "u1", SAID[kind])] if kind else []
    assert [(each.kind, each.consumer_uuid, each.what) for each in several] == wanted
    assert {(each.host, each.node) for each in several} <= {KEY, ("h9", "n1"), ("h1", "n9")}


@pytest.mark.parametrize(
    ("name", "amounts_claimed", "what"),
    [
        ("memory_mb", [5120], None),
        ("memory_mb", [5000, 121], "1024 MB of memory reported and 5121 claimed, of 6144"),
        ("vcpus", [7], None),
        ("vcpus", [7, 1], "1 vCPUs reported and 8 claimed, of 8"),
        ("disk_gb", [90], None),
        ("disk_gb", [90, 1], "10 GB of disk reported and 91 claimed, of 100"),
    ],
)
def test_more_is_claimed_than_the_host_has(name, amounts_claimed, what):
    nothing = {"memory_mb": 0, "vcpus": 0, "disk_gb": 0}
    several = found([claim(**{**nothing, name: each}) for each in amounts_claimed], [waiting()])

    assert several == ([Difference(OVER, "h1", "n1", None, what)] if what else [])


@pytest.mark.parametrize(
    ("columns", "count", "what"),
    [
        pytest.param({"running_vms": 1}, 1, None, id="as many"),
        pytest.param({"running_vms": None}, 3, None, id="not reported"),
        pytest.param({"running_vms": 0}, 1, "0 instances reported, 1 are there", id="too few"),
        pytest.param({"running_vms": 2}, 0, "2 instances reported, 0 are there", id="too many"),
        pytest.param({"free_ram_mb": -9, "vcpus_used": 99}, 1, None, id="used up without claims"),
    ],
)
def test_hosts_without_claims(columns, count, what):
    several = found(nodes=[node(**columns)], count=count)

    assert several == ([] if what is None else [Difference("report", "h1", "n1", None, what)])


def test_every_host_with_a_name_is_looked_at_in_order():
    nodes = [
        node(hypervisor_hostname="n2", running_vms=5),
        node(running_vms=5),
        node(host="h0", hypervisor_hostname=None, running_vms=5),
        node(host="h3", hypervisor_hostname="n3", running_vms=0),
        node(host=None, running_vms=5),
    ]

    several = found([claim(vcpus=99)], [waiting()], nodes)

    assert [(each.kind, each.host, each.node) for each in several] == [
        ("report", "h0", ""),
        ("report", "h1", "n1"),
        (OVER, "h1", "n1"),
        ("report", "h1", "n2"),
    ]
