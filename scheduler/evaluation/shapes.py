"""NUMA cells and PCI devices as the recordings write them, and back (page numa_pci, section 13)."""

from __future__ import annotations

import json
from typing import Any

from scheduler import numa, objects, pci

Plain = dict[str, Any]


def host_of(document: Plain | None) -> numa.HostTopology | None:
    """A host's cells; None without a document."""
    if document is None:
        return None
    cells = []
    for given in document["cells"]:
        fields = dict(given)
        fields["mempages"] = [objects.NUMAPagesTopology(**page) for page in fields["mempages"]]
        if "network_metadata" in fields:
            fields["network_metadata"] = objects.NetworkMetadata(**fields["network_metadata"])
        cells.append(objects.NUMACell(**fields))
    return numa.HostTopology.from_object(objects.NUMATopology(cells=cells))


def guest_of(document: Plain | None) -> numa.GuestTopology | None:
    """A guest's cells; None without a document."""
    if document is None:
        return None
    cells = []
    for given in document["cells"]:
        fields = dict(given)
        fields["cpu_pinning_raw"] = fields.pop("cpu_pinning", None)
        cells.append(fields)
    plain = {**document, "cells": cells}
    return numa.GuestTopology.from_object(objects.InstanceNUMATopology.from_dict(plain))


def limits_of(document: Plain | None) -> numa.Limits | None:
    """How far cells may be overcommitted; None without a document."""
    if document is None:
        return None
    fields = dict(document)
    if "network_metadata" in fields:
        fields["network_metadata"] = objects.NetworkMetadata(**fields["network_metadata"])
    return numa.Limits.from_object(objects.NUMATopologyLimits(**fields))


def pools_of(document: list[Plain] | None) -> pci.Pools | None:
    """A host's pools; None without a document."""
    return None if document is None else pci.Pools.from_text(json.dumps(document))


def requests_of(document: list[Plain] | None) -> tuple[pci.Request, ...]:
    """What is asked for of devices."""
    return pci.requests_of(objects.InstancePCIRequests.from_dict(document or []))


def used(host: numa.HostTopology | None) -> list[Plain] | None:
    """Per cell of the host what is in use."""
    if host is None:
        return None
    return [
        {
            "id": cell.id,
            "cpu_usage": cell.cpu_usage,
            "memory_usage": cell.memory_usage_mb,
            "pinned_cpus": sorted(cell.pinned),
            "pages_used": {str(pages.size_kb): pages.used for pages in cell.pages},
        }
        for cell in host.cells
    ]


def reported(host: numa.HostTopology) -> list[Plain]:
    """Everything about the cells of a host."""
    return [
        {
            "id": cell.id,
            "cpuset": sorted(cell.cpus),
            "memory": cell.memory_mb,
            "cpu_usage": cell.cpu_usage,
            "memory_usage": cell.memory_usage_mb,
            "pinned_cpus": sorted(cell.pinned),
            "siblings": [sorted(group) for group in cell.siblings],
            "mempages": [
                {
                    "size_kb": pages.size_kb,
                    "total": pages.total,
                    "used": pages.used,
                    "free": pages.free_kb // pages.size_kb,
                }
                for pages in cell.pages
            ],
        }
        for cell in host.cells
    ]


def fitted(guest: numa.GuestTopology | None) -> list[Plain] | None:
    """Where the cells of a guest were put."""
    if guest is None:
        return None
    shown = []
    for cell in guest.cells:
        entry: Plain = {"id": cell.id, "pagesize": cell.pagesize}
        if cell.pins is not None:
            entry["cpu_pinning"] = {str(mine): theirs for mine, theirs in cell.pins}
        if cell.cores is not None:
            entry["cpu_topology"] = [1, *cell.cores]
        if cell.reserved:
            entry["cpuset_reserved"] = sorted(cell.reserved)
        shown.append(entry)
    return shown


def wished(topology: objects.InstanceNUMATopology | None) -> list[Plain] | None:
    """What a flavor and an image ask for."""
    if topology is None:
        return None
    return [
        {
            "id": cell.id,
            "cpuset": sorted(cell.cpuset),
            "pcpuset": sorted(cell.pcpuset),
            "memory": cell.memory,
            "pagesize": cell.pagesize,
            "cpu_policy": cell.cpu_policy,
            "cpu_thread_policy": cell.cpu_thread_policy,
        }
        for cell in topology.cells
    ]


def carried(guest: numa.GuestTopology) -> list[Plain]:
    """The cells of a guest as a request carries them."""
    return [
        {
            "id": cell.id,
            "cpuset": sorted(cell.cpus),
            "memory": cell.memory_mb,
            "pagesize": cell.pagesize,
            "cpu_policy": cell.policy,
            "cpu_thread_policy": cell.thread_policy,
            "cpu_pinning": {str(mine): theirs for mine, theirs in cell.pins or ()},
        }
        for cell in guest.cells
    ]
