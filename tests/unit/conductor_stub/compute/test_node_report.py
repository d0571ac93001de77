"""The columns of a compute node, and the place that guests get on it."""

import dataclasses
import datetime
from contextlib import nullcontext

import pytest

from conductor_stub.compute.node_report import DEVICES_KEY, NodeReport
from conductor_stub.compute.profiles import HostKind, HostPlan, NumaCell, PciPool
from scheduler import errors, numa, objects
from tests.builders import a_conf
from tests.unit.numa.builders import guest, want

CELL = NumaCell(
    frozenset({0, 1, 4, 5}),
    4096,
    siblings=(frozenset({0, 4}), frozenset({1, 5})),
    socket=1,
    pages={2048: 512, 4: 786432},
)
OTHER_CELL = NumaCell(frozenset({2, 3, 6, 7}), 4096)
GPU = PciPool("10de", "1db4", 2, numa_node=0, tags={"dev_type": "type-PCI"})
OLD_LIMITS = {"cpus": "0,1", "cpu_limit": 2.0, "mem": {"total": 10, "limit": 20.0}}


NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)
SIZES = {"vcpus": 1, "memory_mb": 512, "root_gb": 10, "ephemeral_gb": 0, "os_type": None}
STATE = {"vm_state": "active", "task_state": None, "project_id": "p", "system_metadata": {}}


def a_node(*parts, stats=None, **options):
    cells = tuple(part for part in parts if isinstance(part, NumaCell))
    pools = tuple(
        part if cells else dataclasses.replace(part, numa_node=None)
        for part in parts
        if isinstance(part, PciPool)
    )
    vcpus = sum(len(cell.cpus) for cell in cells) or 8
    kind = HostKind("k", vcpus, 8192, 100, numa_cells=cells, pci_pools=pools, stats=stats)
    return NodeReport(HostPlan("h", kind), a_conf(**options), lambda: NOW)


def an_instance(*requests, cells=None, policy=None, **more):
    made = [
        objects.InstancePCIRequest(count=c, spec=s, alias_name="a", numa_policy=policy)
        for c, s in requests
    ]
    return objects.Instance(
        numa_topology=cells.to_object() if cells else None,
        pci_requests=objects.InstancePCIRequests(requests=made) if made else None,
        **{**SIZES, **STATE, **more},
    )


def moved_in(node, *newcomers):
    """The instances as they are after the host took them one by one."""
    present = []
    for newcomer in newcomers:
        place = node.place(present, newcomer, {})
        if place.topology is not None:
            newcomer.numa_topology = place.topology
        newcomer.system_metadata = {DEVICES_KEY: place.devices} if place.devices else {}
        present.append(newcomer)
    return present


def cells_left(node, present):
    topology = objects.NUMATopology.from_text(node.columns(present, 0)["numa_topology"])
    assert topology is not None
    return list(topology.cells)


def test_the_cells_read_back():
    first, second = cells_left(a_node(CELL, OTHER_CELL), [])
    assert (first.id, second.id) == (0, 1)
    assert first.cpuset == first.pcpuset == {0, 1, 4, 5}
    assert first.siblings == [{0, 4}, {1, 5}]
    assert [(page.size_kb, page.total) for page in first.mempages] == [(4, 786432), (2048, 512)]
    assert (first.memory, first.memory_usage, first.cpu_usage, first.socket) == (4096, 0, 0, 1)
    assert second.siblings == [{2}, {3}, {6}, {7}]
    assert [(page.size_kb, page.total) for page in second.mempages] == [(4, 1048576)]


@pytest.mark.parametrize(
    ("limits", "fits"),
    [
        ({}, True),
        ({"numa_topology": numa.Limits(1.0, 2.0).to_object()}, False),
        ({"numa_topology": numa.Limits(2.0, 2.0).to_object()}, True),
        ({"numa_topology": {"cells": [OLD_LIMITS]}}, False),
    ],
    ids=["none", "one", "two", "one in the oldest form"],
)
def test_the_schedulers_limits_of_cells_hold(limits, fits):
    node = a_node(OTHER_CELL)
    *present, newcomer = (an_instance(cells=guest(want({0}))) for _ in range(5))
    present = moved_in(node, *present)
    with nullcontext() if fits else pytest.raises(errors.ComputeResourcesUnavailable):
        assert node.place(present, newcomer, limits).topology


def test_a_report_does_not_fail_when_a_profile_shrank(caplog):
    wide = guest(want({0}, "dedicated"), want({1}, "dedicated"))
    newcomer = an_instance((2, [{"vendor_id": "10de"}]), cells=wide)
    present = moved_in(a_node(CELL, OTHER_CELL, GPU), newcomer)

    small = a_node(NumaCell(frozenset({8}), 4096), dataclasses.replace(GPU, count=1))

    assert not objects.PciDevicePoolList.from_text(small.columns(present, 0)["pci_stats"])
    assert cells_left(small, present)[0].pinned_cpus == set()
    assert "does not count in any cell" in caplog.text


def test_what_a_host_keeps_for_itself_counts_as_used():
    guests = [an_instance(memory_mb=1024, ephemeral_gb=5), an_instance(task_state="spawning")]
    columns = a_node(
        DEFAULT__reserved_host_memory_mb=100, DEFAULT__reserved_host_disk_mb=1025
    ).columns(guests, 0)
    assert (columns["memory_mb_used"], columns["free_ram_mb"]) == (1636, 8192 - 1636)
    disk = [columns[name] for name in ("local_gb_used", "free_disk_gb", "disk_available_least")]
    assert disk == [27, 73, 73], "a begun GB of reserved disk counts whole"


@pytest.mark.parametrize(
    ("limits", "refusal"),
    [
        ({"memory_mb": None}, None),
        ({"memory_mb": 1536, "disk_gb": 60, "vcpu": 5}, None),
        ({"memory_mb": 1535.0}, "512 MB of memory requested, 511 free"),
        ({"disk_gb": 59}, "10 GB of disk requested, 9 free"),
        ({"vcpu": 0}, "1 vcpus requested, -4 free"),
        ({"disk_gb": 59, "vcpu": 4}, "9 free; 1 vcpus"),
    ],
)
def test_only_what_has_a_limit_is_checked(limits, refusal):
    present = [an_instance(vcpus=4, memory_mb=512, root_gb=50)]
    refused = pytest.raises(errors.ComputeResourcesUnavailable, match=refusal)
    with refused if refusal else nullcontext():
        a_node(DEFAULT__reserved_host_memory_mb=512).place(present, an_instance(), limits)


def test_stats_count_instances_as_text_but_not_a_faked_counter():
    guests = [
        an_instance(vm_state="building", task_state="spawning"),
        an_instance(task_state="image_snapshot"),
    ]
    node = a_node(stats={"gpu": "volta", "num_instances": "99"})
    found = node.columns(guests, 3)["stats"]
    states = {f"num_vm_{state}": "1" for state in ("building", "active")}
    tasks = {f"num_task_{task}": "1" for task in ("spawning", "image_snapshot")}
    counts = {"num_instances": "2", "io_workload": "2", "failed_builds": "3", "num_proj_p": "2"}
    assert found == {"gpu": "volta", "num_os_type_None": "2", **states, **tasks, **counts}
