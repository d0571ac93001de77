"""The worked examples of NUMA and PCI, calculated by the parts that the filters use.

One function per kind of example (reference page numa_pci, section 13): from its input to its
answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from scheduler import errors, numa, objects, pci
from scheduler.evaluation import shapes
from scheduler.evaluation.recording import Answer
from scheduler.numa import NumaSemantics

Input = Mapping[str, Any]


def calculate(kind: str, given: Input, semantics: NumaSemantics) -> Answer:
    """The answer to an example of *kind*; raises BadCase if there is no such kind."""
    if kind not in _KINDS:
        raise errors.BadCase(place=f"kind {kind!r}", reason=f"none of {', '.join(_KINDS)}")
    try:
        return _KINDS[kind](given, semantics)
    except errors.NovaException as error:
        return {"error": type(error).__name__}


def _fit(given: Input, semantics: NumaSemantics) -> Answer:
    host, guest = shapes.host_of(given["host"]), shapes.guest_of(given["instance"])
    requests = shapes.requests_of(given.get("pci_requests"))
    pools = shapes.pools_of(given.get("pools"))
    limits, pack = shapes.limits_of(given["limits"]), given.get("pack", False)
    if host is None or guest is None:
        return {"fit": False}
    result = numa.fit(host, guest, limits, requests, pools, semantics, pack=pack)
    if result is None:
        return {"fit": False}
    shown: Answer = {
        "fit": True,
        "cells": shapes.fitted(result),
        "usage_after": shapes.used(numa.consume(host, result, semantics)),
    }
    if requests and pools is not None:
        allocation = pci.allocate(pools, requests, host.around(result.cell_ids), semantics.pci)
        shown["pools_after"] = allocation.pools.to_dicts()
    return shown


def _pci(given: Input, semantics: NumaSemantics) -> Answer:
    pools = shapes.pools_of(given["pools"]) or pci.Pools()
    requests = shapes.requests_of(given["pci_requests"])
    cells = None
    if given["numa_cells"] is not None:
        sockets = tuple(enumerate(given.get("host_sockets") or ()))
        cells = pci.Cells(frozenset(given["numa_cells"]), sockets)
    providers = given.get("provider_mapping")
    allocation = pci.allocate(pools, requests, cells, semantics.pci, providers)
    shown: Answer = {
        "supported": pci.supports(pools, requests, cells, semantics.pci, providers),
        "pools_after": allocation.pools.to_dicts(),
    }
    if not allocation.complete:
        shown["error"] = errors.PciDeviceRequestFailed.__name__
    return shown


def _usage(given: Input, semantics: NumaSemantics) -> Answer:
    host = shapes.host_of(given["host"])
    guests = [guest for each in given["instances"] if (guest := shapes.guest_of(each))]
    if host is None:
        return {"usage_after": None}
    return {"usage_after": shapes.used(numa.usage(host, guests, semantics, free=given["free"]))}


def _consume(given: Input, semantics: NumaSemantics) -> Answer:
    sizes, steps = given["sizes"], []
    limits, requests = shapes.limits_of(given["limits"]), shapes.requests_of(given["pci_requests"])
    pools, guest = shapes.pools_of(given["pools"]), shapes.guest_of(given["instance"])
    placement = numa.Placement(shapes.host_of(given["host"]), pools, guest)
    counters = {name: sizes[name] for name in ("free_ram_mb", "free_disk_mb")}
    counters.update(vcpus_used=0, num_instances=0, num_io_ops=0)
    for _number in range(given["repeat"]):
        placement = numa.place(
            placement.host, placement.guest, limits, requests, placement.pools, semantics
        )
        counters["free_ram_mb"] -= sizes["memory_mb"]
        counters["free_disk_mb"] -= (sizes["root_gb"] + sizes["ephemeral_gb"]) * 1024
        counters["vcpus_used"] += sizes["vcpus"]
        counters["num_instances"] += 1
        counters["num_io_ops"] += placement.error is None
        steps.append({"counters": dict(counters), **_placed(placement)})
    return {"steps": steps}


def _placed(placement: numa.Placement) -> Answer:
    shown: Answer = {
        "pools": None if placement.pools is None else placement.pools.to_dicts(),
        "request_topology": shapes.fitted(placement.guest),
        "usage": shapes.used(placement.host),
    }
    if placement.error is not None:
        shown["error"] = type(placement.error).__name__
    return shown


def _constraints(given: Input, semantics: NumaSemantics) -> Answer:
    properties = objects.ImageMetaProps.from_dict(given["image_properties"])
    image = objects.ImageMeta(properties=properties)
    topology = numa.constraints(objects.Flavor(**given["flavor"]), image, semantics)
    return {"topology": shapes.wished(topology)}


def _host_json(given: Input, _semantics: NumaSemantics) -> Answer:
    host = numa.HostTopology.from_text(given["text"])
    return {"cells": None if host is None else shapes.reported(host)}


def _pools_json(given: Input, _semantics: NumaSemantics) -> Answer:
    return {"pools": pci.Pools.from_text(given["text"]).to_dicts()}


def _instance_json(given: Input, _semantics: NumaSemantics) -> Answer:
    topology = objects.InstanceNUMATopology.from_dict(given["text"])
    return {"cells": shapes.carried(numa.GuestTopology.from_object(topology))}


def _alias(given: Input, _semantics: NumaSemantics) -> Answer:
    specs = {} if given["extra_spec"] is None else {pci.ALIAS_KEY: given["extra_spec"]}
    requests = pci.requests_of_flavor(objects.Flavor(extra_specs=specs), given["aliases"])
    return {
        "requests": [
            {"alias_name": one.alias_name, "count": one.count, "spec": one.spec} for one in requests
        ]
    }


_KINDS: dict[str, Callable[[Input, NumaSemantics], Answer]] = {
    "fit": _fit,
    "pci": _pci,
    "usage": _usage,
    "consume": _consume,
    "constraints": _constraints,
    "host_json": _host_json,
    "pools_json": _pools_json,
    "instance_json": _instance_json,
    "alias": _alias,
}
