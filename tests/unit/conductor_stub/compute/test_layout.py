"""Cells and devices of one host, and which of its guests have them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conductor_stub.compute.layout import DEVICES_KEY, Layout
from conductor_stub.compute.profiles import HostKind, NumaCell, PciPool
from scheduler import errors, numa, objects
from scheduler.hosts.consumption import Fitting
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
VF = PciPool("8086", "10ed", 3, tags={"dev_type": "type-VF", "physical_network": "net1"})
PF = PciPool("8086", "10fb", 1, tags={"dev_type": "type-PF", "physical_network": "net1"})
BARE = PciPool("8086", "10ed", 1)
FAR_GPU = PciPool("10de", "1db4", 2, numa_node=1, tags={"dev_type": "type-PCI"})
OLD_LIMITS = {"cpus": "0,1", "cpu_limit": 2.0, "mem": {"total": 10, "limit": 20.0}}


def a_layout(*parts: NumaCell | PciPool, how: Fitting | None = None) -> Layout:
    cells = tuple(part for part in parts if isinstance(part, NumaCell))
    pools = tuple(part for part in parts if isinstance(part, PciPool))
    kind = HostKind("k", 8, 8192, 100, numa_cells=cells, pci_pools=pools)
    return Layout(kind, how or Fitting())


def an_instance(
    *requests: tuple[int, list[dict[str, Any]]],
    cells: numa.GuestTopology | None = None,
    policy: str | None = None,
) -> objects.Instance:
    made = [
        objects.InstancePCIRequest(count=c, spec=s, alias_name="a", numa_policy=policy)
        for c, s in requests
    ]
    return objects.Instance(
        numa_topology=cells.to_object() if cells else None,
        pci_requests=objects.InstancePCIRequests(requests=made) if made else None,
        system_metadata={},
    )


def moved_in(layout: Layout, *newcomers: objects.Instance) -> list[objects.Instance]:
    """The instances as they are after the host took them one by one."""
    present: list[objects.Instance] = []
    for newcomer in newcomers:
        place = layout.place(present, newcomer, {})
        if place.topology is not None:
            newcomer.numa_topology = place.topology
        newcomer.system_metadata = {DEVICES_KEY: place.devices} if place.devices else {}
        present.append(newcomer)
    return present


def pools_left(layout: Layout, present: list[objects.Instance]) -> list[tuple[str, int]]:
    pools = objects.PciDevicePoolList.from_text(layout.columns(present)["pci_stats"])
    return [(pool.product_id, pool.count) for pool in pools or ()]


def cells_left(layout: Layout, present: list[objects.Instance]) -> list[objects.NUMACell]:
    topology = objects.NUMATopology.from_text(layout.columns(present)["numa_topology"])
    assert topology is not None
    return list(topology.cells)


def test_a_host_without_cells_and_devices():
    columns = a_layout().columns([])
    assert columns["numa_topology"] is None
    assert list(objects.PciDevicePoolList.from_text(columns["pci_stats"]) or ()) == []
    place = a_layout().place([], an_instance(cells=guest(want())), {})
    assert (place.topology, place.devices) == (None, None)


def test_the_cells_read_back():
    first, second = cells_left(a_layout(CELL, OTHER_CELL), [])
    assert (first.id, second.id) == (0, 1)
    assert first.cpuset == first.pcpuset == {0, 1, 4, 5}
    assert first.siblings == [{0, 4}, {1, 5}]
    assert [(page.size_kb, page.total) for page in first.mempages] == [(4, 786432), (2048, 512)]
    assert (first.memory, first.memory_usage, first.cpu_usage, first.socket) == (4096, 0, 0, 1)
    assert second.siblings == [{2}, {3}, {6}, {7}]
    assert [(page.size_kb, page.total) for page in second.mempages] == [(4, 1048576)]


@pytest.mark.parametrize(
    ("pools", "guests", "left"),
    [
        ([GPU], [an_instance()], [("1db4", 2)]),
        ([GPU], [an_instance((2, [{"vendor_id": "10de"}]))], []),
        ([VF, PF], [an_instance((1, [{"dev_type": "type-PF"}]))], [("10ed", 3)]),
        ([VF, BARE], [an_instance((2, [{"product_id": "10ed"}]))], [("10ed", 2)]),
    ],
)
def test_devices_are_taken_from_the_first_pools_that_match(pools, guests, left):
    layout = a_layout(*pools)
    assert pools_left(layout, moved_in(layout, *guests)) == left


@pytest.mark.parametrize(
    ("parts", "guests", "reason"),
    [
        ([], [an_instance((1, [{}]))], "PCI devices"),
        ([GPU], [an_instance((3, [{"vendor_id": "10de"}]))], "PCI devices"),
        ([GPU], [an_instance((2, [{}])), an_instance((1, [{}]))], "PCI devices"),
        ([CELL], [an_instance(cells=guest(want(), want()))], "2 NUMA cells requested"),
        ([CELL], [an_instance(cells=guest(want(range(5), "dedicated")))], "1 NUMA cells requested"),
        (
            [OTHER_CELL, GPU],
            [
                an_instance((2, [{}])),
                an_instance((1, [{"vendor_id": "10de"}]), cells=guest(want())),
            ],
            "1 NUMA cells requested",
        ),
    ],
)
def test_what_is_not_there_is_refused(parts, guests, reason):
    layout = a_layout(*parts)
    present = moved_in(layout, *guests[:-1])
    with pytest.raises(errors.ComputeResourcesUnavailable, match=reason):
        layout.place(present, guests[-1], {})


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
    layout = a_layout(OTHER_CELL)
    present = moved_in(layout, *(an_instance(cells=guest(want({0}))) for _ in range(4)))
    if fits:
        assert layout.place(present, an_instance(cells=guest(want({0}))), limits).topology
    else:
        with pytest.raises(errors.ComputeResourcesUnavailable):
            layout.place(present, an_instance(cells=guest(want({0}))), limits)


def test_devices_are_those_near_the_guests_cells_and_stay_with_it():
    layout = a_layout(CELL, OTHER_CELL, GPU, FAR_GPU)
    pinned = guest(want(range(3), "dedicated"))
    near = [
        an_instance((2, [{"vendor_id": "10de"}]), cells=pinned, policy="required") for _ in range(2)
    ]
    present = moved_in(layout, *near)

    for each in present:
        [cell] = each.numa_topology.cells
        [device] = json.loads(each.system_metadata[DEVICES_KEY])
        assert (device["numa_node"], device["count"]) == (cell.id, 2)
    assert {each.numa_topology.cells[0].id for each in present} == {0, 1}
    second = present[1].numa_topology.cells[0].id
    alone = objects.PciDevicePoolList.from_text(layout.columns(present[1:])["pci_stats"])
    assert [pool.numa_node for pool in alone or ()] == [1 - second]


def test_a_report_does_not_fail_when_a_profile_shrank(caplog):
    big = a_layout(CELL, OTHER_CELL, GPU)
    wide = guest(want({0}, "dedicated"), want({1}, "dedicated"))
    present = moved_in(big, an_instance((2, [{"vendor_id": "10de"}]), cells=wide))

    small = a_layout(NumaCell(frozenset({8}), 4096), PciPool("10de", "1db4", 1, 0, GPU.tags))

    assert pools_left(small, present) == []
    assert cells_left(small, present)[0].pinned_cpus == set()
    assert "does not count in any cell" in caplog.text
