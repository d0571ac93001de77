"""The JSON texts of a compute node, read back as the scheduler reads them."""

from __future__ import annotations

import datetime
import json

import pytest

from conductor_stub.compute import documents, profiles

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
