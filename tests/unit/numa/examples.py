"""The worked examples of the reference page: inputs built, outputs in the form of the file."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable
from typing import Any

from scheduler import errors, numa, objects, pci
from scheduler.numa import NumaSemantics

FILE = pathlib.Path(__file__).parents[2] / "data" / "vectors" / "numa_pci_examples.json"
CONTENT = json.loads(FILE.read_text())
ABSENT = object()


def host_of(document: dict[str, Any] | None) -> numa.HostTopology | None:
    if document is None:
        return None
    cells = []
    for given in document["cells"]:
        fields = dict(given)
        fields["mempages"] = [objects.NUMAPagesTopology(**page) for page in fields["mempages"]]
        if "network_metadata" in fields:
            fields["network_metadata"] = objects.NetworkMetadata(**fields["network_metadata"])
        cells.append(objects.NUMACell(**fields))
    return numa.HostTopology.of(objects.NUMATopology(cells=cells))


def guest_of(document: dict[str, Any] | None) -> numa.GuestTopology | None:
    if document is None:
        return None
    cells = []
    for given in document["cells"]:
        fields = dict(given)
        pins = fields.pop("cpu_pinning", None)
        fields["cpu_pinning_raw"] = pins
        cells.append(fields)
    plain = {**document, "cells": cells}
    return numa.GuestTopology.of(objects.InstanceNUMATopology.from_plain(plain))


def limits_of(document: dict[str, Any] | None) -> numa.Limits | None:
    if document is None:
        return None
    fields = dict(document)
    if "network_metadata" in fields:
        fields["network_metadata"] = objects.NetworkMetadata(**fields["network_metadata"])
    return numa.Limits.of(objects.NUMATopologyLimits(**fields))


def pools_of(document: list[dict[str, Any]] | None) -> pci.Pools | None:
    return None if document is None else pci.Pools.from_text(json.dumps(document))


def requests_of(document: list[dict[str, Any]] | None) -> tuple[pci.Request, ...]:
    return pci.requests_of(objects.InstancePCIRequests.from_plain(document or []))


def used(host: numa.HostTopology | None) -> list[dict[str, Any]] | None:
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


def fitted(guest: numa.GuestTopology | None) -> list[dict[str, Any]] | None:
    if guest is None:
        return None
    shown = []
    for cell in guest.cells:
        entry: dict[str, Any] = {"id": cell.id, "pagesize": cell.pagesize}
        if cell.pins is not None:
            entry["cpu_pinning"] = {str(mine): theirs for mine, theirs in cell.pins}
        if cell.cores is not None:
            entry["cpu_topology"] = [1, *cell.cores]
        if cell.reserved:
            entry["cpuset_reserved"] = sorted(cell.reserved)
        shown.append(entry)
    return shown


def run_fit(given: dict[str, Any], semantics: NumaSemantics) -> dict[str, Any]:
    host, guest = host_of(given["host"]), guest_of(given["instance"])
    assert host is not None
    assert guest is not None
    requests, pools = requests_of(given.get("pci_requests")), pools_of(given.get("pools"))
    result = numa.fit(
        host,
        guest,
        limits_of(given["limits"]),
        requests,
        pools,
        semantics,
        pack=given.get("pack", False),
    )
    if result is None:
        return {"fit": False}
    shown: dict[str, Any] = {
        "fit": True,
        "cells": fitted(result),
        "usage_after": used(numa.consume(host, result, semantics)),
    }
    if requests and pools is not None:
        booking = pci.book(pools, requests, host.around(result.cell_ids), semantics.pci)
        assert booking.complete
        shown["pools_after"] = booking.pools.to_dicts()
    return shown


def run_pci(given: dict[str, Any], semantics: NumaSemantics) -> dict[str, Any]:
    pools, requests = pools_of(given["pools"]), requests_of(given["pci_requests"])
    assert pools is not None
    cells = None
    if given["numa_cells"] is not None:
        sockets = tuple(enumerate(given.get("host_sockets") or ()))
        cells = pci.Cells(frozenset(given["numa_cells"]), sockets)
    providers = given.get("provider_mapping")
    booking = pci.book(pools, requests, cells, semantics.pci, providers)
    shown: dict[str, Any] = {
        "supported": pci.supports(pools, requests, cells, semantics.pci, providers),
        "pools_after": booking.pools.to_dicts(),
    }
    if not booking.complete:
        shown["error"] = "PciDeviceRequestFailed"
    return shown


def run_usage(given: dict[str, Any], semantics: NumaSemantics) -> dict[str, Any]:
    host = host_of(given["host"])
    assert host is not None
    guests = [guest for document in given["instances"] if (guest := guest_of(document))]
    return {"usage_after": used(numa.usage(host, guests, semantics, free=given["free"]))}


def run_consume(given: dict[str, Any], semantics: NumaSemantics) -> dict[str, Any]:
    sizes, steps = given["sizes"], []
    placement = numa.Placement(
        host_of(given["host"]), pools_of(given["pools"]), guest_of(given["instance"])
    )
    counters = {name: sizes[name] for name in ("free_ram_mb", "free_disk_mb")}
    counters.update(vcpus_used=0, num_instances=0, num_io_ops=0)
    for _ in range(given["repeat"]):
        placement = numa.place(
            placement.host,
            placement.guest,
            limits_of(given["limits"]),
            requests_of(given["pci_requests"]),
            placement.pools,
            semantics,
        )
        counters["free_ram_mb"] -= sizes["memory_mb"]
        counters["free_disk_mb"] -= (sizes["root_gb"] + sizes["ephemeral_gb"]) * 1024
        counters["vcpus_used"] += sizes["vcpus"]
        counters["num_instances"] += 1
        counters["num_io_ops"] += placement.error is None
        step: dict[str, Any] = {
            "counters": dict(counters),
            "pools": placement.pools.to_dicts() if placement.pools is not None else None,
            "request_topology": fitted(placement.guest),
            "usage": used(placement.host),
        }
        if placement.error is not None:
            step["error"] = type(placement.error).__name__
        steps.append(step)
    return {"steps": steps}


def run_constraints(given: dict[str, Any], semantics: NumaSemantics) -> dict[str, Any]:
    properties = objects.ImageMetaProps.from_dict(given["image_properties"])
    topology = numa.constraints(
        objects.Flavor(**given["flavor"]), objects.ImageMeta(properties=properties), semantics
    )
    return {"topology": None if topology is None else [wished(cell) for cell in topology.cells]}


def wished(cell: objects.InstanceNUMACell) -> dict[str, Any]:
    return {
        "id": cell.id,
        "cpuset": sorted(cell.cpuset),
        "pcpuset": sorted(cell.pcpuset),
        "memory": cell.memory,
        "pagesize": cell.pagesize,
        "cpu_policy": cell.cpu_policy,
        "cpu_thread_policy": cell.cpu_thread_policy,
    }


def run_host_json(given: dict[str, Any], _semantics: NumaSemantics) -> dict[str, Any]:
    host = numa.HostTopology.from_text(given["text"])
    assert host is not None
    return {
        "cells": [
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
    }


def run_pools_json(given: dict[str, Any], _semantics: NumaSemantics) -> dict[str, Any]:
    return {"pools": pci.Pools.from_text(given["text"]).to_dicts()}


def run_instance_json(given: dict[str, Any], _semantics: NumaSemantics) -> dict[str, Any]:
    guest = numa.GuestTopology.of(objects.InstanceNUMATopology.from_plain(given["text"]))
    return {
        "cells": [
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
    }


def run_alias(given: dict[str, Any], _semantics: NumaSemantics) -> dict[str, Any]:
    specs = {} if given["extra_spec"] is None else {pci.ALIAS_KEY: given["extra_spec"]}
    requests = pci.requests_of_flavor(objects.Flavor(extra_specs=specs), given["aliases"])
    return {
        "requests": [
            {"alias_name": one.alias_name, "count": one.count, "spec": one.spec} for one in requests
        ]
    }


RUNNERS: dict[str, Callable[[dict[str, Any], NumaSemantics], dict[str, Any]]] = {
    "fit": run_fit,
    "pci": run_pci,
    "usage": run_usage,
    "consume": run_consume,
    "constraints": run_constraints,
    "host_json": run_host_json,
    "pools_json": run_pools_json,
    "instance_json": run_instance_json,
    "alias": run_alias,
}


def run(example: dict[str, Any], semantics: NumaSemantics) -> dict[str, Any]:
    """What our parts make of the input, in the form of the file."""
    try:
        return RUNNERS[example["kind"]](example["input"], semantics)
    except errors.NovaException as exc:
        return {"error": type(exc).__name__}
