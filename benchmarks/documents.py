"""Shapes of hosts and the documents that go with them, as text the way the tables hold it."""

import functools
import json
import random
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from scheduler import objects

MB_PER_GB = 1024
MODELS = 20
TOPOLOGIES = 50
GUEST_CPUS = (2, 2, 4, 4, 8)
PAGE_KB = 2048
CPU_MODELS = ("Broadwell-IBRS", "Skylake-Server-IBRS", "Cascadelake-Server", "EPYC-Rome")
FEATURES = [f"feature-{number}" for number in range(60)]


@dataclass(frozen=True)
class Shape:
    """What one host has, and its documents by column."""

    vcpus: int
    memory_mb: int
    local_gb: int
    documents: Mapping[str, str | None]


_PLAIN = {
    "cpu_info": json.dumps({"arch": "x86_64", "vendor": "Intel", "model": "Broadwell-IBRS"}),
    "supported_instances": json.dumps([["x86_64", "qemu", "hvm"], ["x86_64", "kvm", "hvm"]]),
    "stats": "{}",
    "metrics": "[]",
    "numa_topology": None,
    "pci_stats": None,
}
_PLAIN_SIZES = (
    Shape(16, 32 * MB_PER_GB, 500, _PLAIN),
    Shape(32, 128 * MB_PER_GB, 2000, _PLAIN),
    Shape(64, 256 * MB_PER_GB, 4000, _PLAIN),
)


def plain(number: int, rng: random.Random, load: float) -> Shape:
    """One of three sizes; nothing else differs."""
    del rng, load
    return _PLAIN_SIZES[number % len(_PLAIN_SIZES)]


@dataclass(frozen=True)
class Model:
    """Hosts that were bought together."""

    number: int
    cores_per_cell: int
    memory_mb: int
    local_gb: int
    cells: int = 2

    @property
    def vcpus(self) -> int:
        """Hyper-threads of all cells."""
        return 2 * self.cores_per_cell * self.cells

    def siblings(self, cell: int) -> list[set[int]]:
        """The two hyper-threads of every core of a cell."""
        cores = range(cell * self.cores_per_cell, (cell + 1) * self.cores_per_cell)
        return [{core, core + self.vcpus // 2} for core in cores]


def _model(number: int) -> Model:
    cores = (8, 12, 16, 24, 32)[number % 5]
    return Model(number, cores, (8 + number // 5 % 8) * cores * MB_PER_GB, 1000 + 250 * number)


def realistic(number: int, rng: random.Random, load: float) -> Shape:
    """One of twenty models; statistics of its own; one in ten has pinned servers."""
    model = _model(number % MODELS)
    topology = (
        numa_topology(model, _pinned(model, rng, load))
        if number % 10 == 0
        else _idle_topology(model.number)
    )
    return Shape(
        model.vcpus,
        model.memory_mb,
        model.local_gb,
        {
            "cpu_info": _cpu_info(model.number),
            "supported_instances": _supported_instances(),
            "stats": _stats(rng, load),
            "metrics": "[]",
            "numa_topology": topology,
            "pci_stats": pci_stats(model, free=8) if model.number % 4 == 0 else pci_stats(None),
        },
    )


def numa(number: int, rng: random.Random, load: float) -> Shape:
    """One of fifty sets of cells with huge pages; pinned servers and taken devices on each."""
    model = _model(number % TOPOLOGIES)
    return Shape(
        model.vcpus,
        model.memory_mb,
        model.local_gb,
        {
            **_PLAIN,
            "numa_topology": numa_topology(model, _pinned(model, rng, load)),
            "pci_stats": pci_stats(model, free=rng.randrange(9)),
        },
    )


MIXES: Mapping[str, Callable[[int, random.Random, float], Shape]] = {
    "plain": plain,
    "realistic": realistic,
    "numa": numa,
}


def _pinned(model: Model, rng: random.Random, load: float) -> list[int]:
    """Per cell how many hyper-threads servers are pinned to, filled up one server at a time."""
    taken = [0] * model.cells
    per_cell = 2 * model.cores_per_cell
    wanted = int(per_cell * model.cells * load * rng.uniform(0.0, 2.0))
    while sum(taken) < wanted:
        cell, cpus = rng.randrange(model.cells), rng.choice(GUEST_CPUS)
        taken[cell] = min(per_cell, taken[cell] + cpus)
    return taken


@functools.cache
def _idle_topology(number: int) -> str:
    model = _model(number)
    return numa_topology(model, [0] * model.cells)


def numa_topology(model: Model, pinned: list[int]) -> str:
    """The text of a host whose cells have so many hyper-threads pinned, 2 GB behind each."""
    cells = []
    for cell, count in enumerate(pinned):
        siblings = model.siblings(cell)
        cpus = [cpu for core in siblings for cpu in sorted(core)]
        memory_mb = model.memory_mb // model.cells
        used_mb = min(memory_mb // 2, count * 2 * MB_PER_GB)
        cells.append(
            objects.NUMACell(
                id=cell,
                cpuset=set(cpus),
                pcpuset=set(cpus),
                memory=memory_mb,
                cpu_usage=count,
                memory_usage=used_mb,
                pinned_cpus=set(cpus[:count]),
                siblings=siblings,
                mempages=_pages(memory_mb, used_mb),
                socket=cell,
            )
        )
    return str(objects.NUMATopology(cells=cells).to_text())


def _pages(memory_mb: int, used_mb: int) -> list[objects.NUMAPagesTopology]:
    half_kb = memory_mb * 512
    return [
        objects.NUMAPagesTopology(size_kb=4, total=half_kb // 4, used=0),
        objects.NUMAPagesTopology(
            size_kb=PAGE_KB, total=half_kb // PAGE_KB, used=used_mb * 1024 // PAGE_KB
        ),
    ]


def pci_stats(model: Model | None, free: int = 0) -> str:
    """The text of a host with *free* network functions on each cell; none without a *model*."""
    cells = range(model.cells) if model else ()
    pools = [
        objects.PciDevicePool(
            vendor_id="8086",
            product_id="154c",
            numa_node=cell,
            count=free,
            tags={"dev_type": "type-VF", "physical_network": f"physnet{cell}"},
        )
        for cell in cells
    ]
    return json.dumps(objects.PciDevicePoolList(objects=pools).obj_to_primitive())


@functools.cache
def _cpu_info(number: int) -> str:
    model = _model(number)
    return json.dumps(
        {
            "arch": "x86_64",
            "model": CPU_MODELS[number % len(CPU_MODELS)],
            "vendor": "Intel" if number % 4 < 3 else "AMD",
            "topology": {
                "cells": model.cells,
                "sockets": 1,
                "cores": model.cores_per_cell,
                "threads": 2,
            },
            "features": FEATURES[number % 7 :],
        }
    )


@functools.cache
def _supported_instances() -> str:
    machines = ("alpha", "armv7l", "aarch64", "i686", "ppc64", "ppc64le", "riscv64", "s390x")
    emulated: list[list[str]] = [[each, "qemu", "hvm"] for each in machines]
    return json.dumps([*emulated, ["x86_64", "qemu", "hvm"], ["x86_64", "kvm", "hvm"]])


def _stats(rng: random.Random, load: float) -> str:
    """What the resource tracker counts, with the projects whose servers are there."""
    projects = {f"num_proj_{uuid.UUID(int=rng.getrandbits(128)).hex}": 1 for _ in range(4)}
    servers = int(20 * load * rng.uniform(0.5, 1.5))
    stats: dict[str, Any] = {
        "num_instances": servers,
        "num_vm_active": servers,
        "num_task_None": servers,
        "num_os_type_None": servers,
        **projects,
        "io_workload": 0,
        "failed_builds": 0,
    }
    return json.dumps({name: str(count) for name, count in stats.items()})
