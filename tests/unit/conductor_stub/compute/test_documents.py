"""The JSON texts of a compute node, read back as the scheduler reads them."""

from __future__ import annotations

import datetime
import json

import pytest

from conductor_stub.compute import documents, profiles
from scheduler import objects

PLAIN = profiles.HostKind("k", vcpus=8, memory_mb=8192, local_gb=100)
CELL = profiles.NumaCell(
    frozenset({0, 1, 4, 5}),
    4096,
    siblings=(frozenset({0, 4}), frozenset({1, 5})),
    socket=1,
    pages={2048: 512, 4: 786432},
)
OTHER_CELL = profiles.NumaCell(frozenset({2, 3, 6, 7}), 4096)


def test_cpu_info_is_the_profiles_own():
    kind = profiles.HostKind("k", 8, 8192, 100, cpu_info={"arch": "aarch64"})
    assert json.loads(documents.cpu_info(kind)) == {"arch": "aarch64"}


@pytest.mark.parametrize(("cells", "cores"), [((), 8), ((CELL, OTHER_CELL), 4)])
def test_cpu_info_without_one_matches_the_vcpus(cells, cores):
    kind = profiles.HostKind("k", 8, 8192, 100, numa_cells=cells)
    topology = json.loads(documents.cpu_info(kind))["topology"]
    assert topology == {"cells": max(len(cells), 1), "sockets": 1, "cores": cores, "threads": 1}


def test_supported_instances_are_triples():
    assert json.loads(documents.supported_instances(PLAIN))[0] == ["x86_64", "qemu", "hvm"]


def test_metrics_are_a_list_with_time_and_source():
    kind = profiles.HostKind("k", 8, 8192, 100, metrics={"cpu.percent": 0.25})
    now = datetime.datetime(2026, 1, 2, 3, 4, 5)
    assert documents.metrics(PLAIN, now) == "[]"
    assert json.loads(documents.metrics(kind, now)) == [
        {
            "name": "cpu.percent",
            "value": 0.25,
            "timestamp": "2026-01-02T03:04:05",
            "source": "stub",
        }
    ]


def test_a_host_without_cells_reports_none():
    assert documents.numa_topology(PLAIN) is None


def test_the_numa_topology_reads_back():
    kind = profiles.HostKind("k", 8, 8192, 100, numa_cells=(CELL, OTHER_CELL))
    topology = objects.NUMATopology.from_text(documents.numa_topology(kind))
    assert topology is not None
    first, second = topology.cells
    assert (first.id, second.id) == (0, 1)
    assert first.cpuset == {0, 1, 4, 5}
    assert first.siblings == [{0, 4}, {1, 5}]
    assert [(page.size_kb, page.total) for page in first.mempages] == [(4, 786432), (2048, 512)]
    assert (first.memory, first.memory_usage, first.cpu_usage, first.socket) == (4096, 0, 0, 1)
    assert second.siblings == [{2}, {3}, {6}, {7}]


@pytest.mark.parametrize(
    "pools",
    [
        (),
        (
            profiles.PciPool("8086", "10ed", 4, numa_node=1, tags={"physical_network": "net1"}),
            profiles.PciPool("10de", "1db4", 2),
        ),
    ],
)
def test_pci_pools_read_back(pools):
    read = objects.PciDevicePoolList.from_text(documents.pci_stats(pools))
    assert read is not None
    assert [pool.to_dict() for pool in read] == [
        {
            "vendor_id": pool.vendor_id,
            "product_id": pool.product_id,
            "count": pool.count,
            "numa_node": pool.numa_node,
            **pool.tags,
        }
        for pool in pools
    ]
