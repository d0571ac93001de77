"""The JSON texts in a compute node's columns (reference page database, section 5)."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from typing import Any

from conductor_stub.compute.profiles import HostKind, NumaCell, PciPool
from scheduler import objects

METRIC_SOURCE = "stub"


def cpu_info(kind: HostKind) -> str:
    """The profile's own, or a plain processor with the kind's number of cores."""
    if kind.cpu_info is not None:
        return json.dumps(kind.cpu_info)
    cells = len(kind.numa_cells) or 1
    topology = {"cells": cells, "sockets": 1, "cores": kind.vcpus // cells, "threads": 1}
    return json.dumps(
        {
            "vendor": "Intel",
            "model": "Broadwell",
            "arch": "x86_64",
            "features": [],
            "topology": topology,
        }
    )


def supported_instances(kind: HostKind) -> str:
    """``[architecture, hypervisor type, vm mode]`` triples."""
    return json.dumps([list(triple) for triple in kind.supported_instances])


def metrics(kind: HostKind, now: datetime.datetime) -> str:
    """The kind's metrics as measured *now*; values are stored as the profile has them."""
    measured: list[dict[str, Any]] = [
        {"name": name, "value": value, "timestamp": now.isoformat(), "source": METRIC_SOURCE}
        for name, value in kind.metrics.items()
    ]
    return json.dumps(measured)


def numa_topology(kind: HostKind) -> str | None:
    """The host's NUMA cells; None for a host that reports none.

    Guests are not fitted into cells here, so the cells are always reported as unused.
    """
    if not kind.numa_cells:
        return None
    cells = [_cell(number, cell) for number, cell in enumerate(kind.numa_cells)]
    return objects.NUMATopology(cells=cells).to_text()


def _cell(number: int, cell: NumaCell) -> objects.NUMACell:
    siblings = cell.siblings or [{cpu} for cpu in sorted(cell.cpus)]
    return objects.NUMACell(
        id=number,
        cpuset=set(cell.cpus),
        pcpuset=set(cell.cpus),
        memory=cell.memory_mb,
        cpu_usage=0,
        memory_usage=0,
        pinned_cpus=set(),
        siblings=[set(group) for group in siblings],
        socket=cell.socket,
        mempages=[
            objects.NUMAPagesTopology(size_kb=size, total=total, used=0, reserved=0)
            for size, total in sorted(cell.pages.items())
        ],
    )


def pci_stats(pools: Sequence[PciPool]) -> str:
    """The devices that are free, as a list of pools."""
    return json.dumps(
        objects.PciDevicePoolList(
            objects=[
                objects.PciDevicePool(
                    vendor_id=pool.vendor_id,
                    product_id=pool.product_id,
                    numa_node=pool.numa_node,
                    count=pool.count,
                    tags=dict(pool.tags),
                )
                for pool in pools
            ]
        ).obj_to_primitive()
    )
