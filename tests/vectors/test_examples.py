"""Worked examples of NUMA and PCI, calculated by the parts that the filters use.

One function per kind of example (reference page numa_pci, section 13): from its input to its
answer.  Cells and devices are read and shown as the recordings write them.
"""

import json
import pathlib

import pytest

from scheduler import errors, numa, objects, pci
from scheduler.evaluation.deciding import cells_in_use

PATH = pathlib.Path(__file__).parents[1] / "data" / "vectors" / "numa_pci_examples.json"
RELEASES = {"newton": numa.NEWTON, "2026": numa.CURRENT}
#: Errors of Nova that do not say what is wrong.
PYTHON_ERRORS = {"KeyError", "TypeError", "ValueError"}
#: Answered otherwise on purpose: a host's text is read whatever minor version or form it has, and
#: guests are counted one after the other, as schedulers do.
ON_PURPOSE = {
    ("host_json_empty_object", "2026"),
    ("host_json_legacy", "2026"),
    ("host_json_too_new", "2026"),
    ("host_json_too_new", "newton"),
    ("usage_two_guests_same_pages", "newton"),
}


def recorded():
    """Each example with a release and what is expected of it there."""
    document = json.loads(PATH.read_text())
    for each in document["examples"]:
        later = {**each["expect"], **each.get("later_differs", {})}
        for name in each.get("later_absent", ()):
            later.pop(name, None)
        yield each, "newton", each["expect"]
        yield each, "2026", later
    yield from ((each, "2026", each["expect"]) for each in document["later_only"])


@pytest.mark.parametrize(
    ("example", "release", "expected"),
    [pytest.param(*each, id=f"{each[0]['name']}@{each[1]}") for each in recorded()],
)
def test_every_example_is_answered_as_recorded(example, release, expected):
    try:
        answer = globals()[f"_{example['kind']}"](example["input"], RELEASES[release])
    except errors.NovaException as error:
        answer = {"error": type(error).__name__}
    is_same = comparable(answer, release) == comparable(expected, release)
    if expected.get("error") in PYTHON_ERRORS:  # the field that is wrong is named here
        is_same = "error" in answer
    assert is_same is ((example["name"], release) not in ON_PURPOSE), answer


def comparable(value, release):
    """Without what is null or today left open; CPU sets count with their pinned part."""
    if isinstance(value, list):
        return [comparable(each, release) for each in value]
    if not isinstance(value, dict):
        return value
    shown = {name: comparable(each, release) for name, each in value.items() if each is not None}
    if release == "2026":
        shown.pop("cpu_topology", None)
    if "pcpuset" in shown:
        shown["cpuset"] = sorted({*shown["cpuset"], *shown.pop("pcpuset")})
    return shown


def _fit(given, semantics):
    host, guest = _host(given["host"]), _guest(given["instance"])
    requests, pools = _requests(given.get("pci_requests")), _pools(given.get("pools"))
    rules = numa.Rules(semantics, given.get("pack", False))
    if host is None or guest is None:
        return {"fit": False}
    wish = numa.Wish(guest, requests, _limits(given["limits"]), rules)
    result = wish.fit(host, pools)
    if result is None:
        return {"fit": False}
    shown = {
        "fit": True,
        "cells": _fitted(result),
        "usage_after": cells_in_use(numa.consume(host, result, semantics)),
    }
    if requests and pools is not None:
        allocation = pci.allocate(pools, requests, host.around(result.cell_ids), semantics.pci)
        shown["pools_after"] = allocation.pools.to_dicts()
    return shown


def _pci(given, semantics):
    pools, requests = _pools(given["pools"]) or pci.Pools(), _requests(given["pci_requests"])
    cells = None
    if given["numa_cells"] is not None:
        sockets = tuple(enumerate(given.get("host_sockets") or ()))
        cells = pci.Cells(frozenset(given["numa_cells"]), sockets)
    allocation = pci.allocate(pools, requests, cells, semantics.pci)
    shown = {
        "supported": pci.supports(pools, requests, cells, semantics.pci),
        "pools_after": allocation.pools.to_dicts(),
    }
    if not allocation.complete:
        shown["error"] = errors.PciDeviceRequestFailed.__name__
    return shown


def _usage(given, semantics):
    host = _host(given["host"])
    for each in given["instances"]:
        if guest := _guest(each):
            host = numa.consume(host, guest, semantics)
    return {"usage_after": cells_in_use(host)}


def _consume(given, semantics):
    sizes, steps = given["sizes"], []
    limits, requests = _limits(given["limits"]), _requests(given["pci_requests"])
    placement = numa.Placement(
        _host(given["host"]), _pools(given["pools"]), _guest(given["instance"])
    )
    counters = {name: sizes[name] for name in ("free_ram_mb", "free_disk_mb")}
    counters.update(vcpus_used=0, num_instances=0, num_io_ops=0)
    for _number in range(given["repeat"]):
        wish = numa.Wish(placement.guest, requests, limits, numa.Rules(semantics))
        placement = wish.place(placement.host, placement.pools)
        counters["free_ram_mb"] -= sizes["memory_mb"]
        counters["free_disk_mb"] -= (sizes["root_gb"] + sizes["ephemeral_gb"]) * 1024
        counters["vcpus_used"] += sizes["vcpus"]
        counters["num_instances"] += 1
        counters["num_io_ops"] += placement.error is None
        error = {} if placement.error is None else {"error": type(placement.error).__name__}
        steps.append(
            {
                "counters": dict(counters),
                "pools": None if placement.pools is None else placement.pools.to_dicts(),
                "request_topology": _fitted(placement.guest),
                "usage": placement.host and cells_in_use(placement.host),
                **error,
            }
        )
    return {"steps": steps}


def _constraints(given, semantics):
    properties = objects.ImageMetaProps.from_dict(given["image_properties"])
    image = objects.ImageMeta(properties=properties)
    topology = numa.constraints(objects.Flavor(**given["flavor"]), image, semantics)
    if topology is None:
        return {"topology": None}
    names = "id cpuset pcpuset memory pagesize cpu_policy cpu_thread_policy"
    return {"topology": [_picked(cell, names) for cell in topology.cells]}


def _host_json(given, _semantics):
    host = numa.HostTopology.from_text(given["text"])
    if host is None:
        return {"cells": None}
    cells = []
    for cell in host.cells:
        names = "id cpuset=cpus memory=memory_mb cpu_usage memory_usage=memory_usage_mb"
        shown = _picked(cell, f"{names} pinned_cpus=pinned")
        shown["siblings"] = [sorted(group) for group in cell.siblings]
        shown["mempages"] = [
            {**_picked(pages, "size_kb total used"), "free": pages.free_kb // pages.size_kb}
            for pages in cell.pages
        ]
        cells.append(shown)
    return {"cells": cells}


def _pools_json(given, _semantics):
    return {"pools": pci.Pools.from_text(given["text"]).to_dicts()}


def _instance_json(given, _semantics):
    topology = objects.InstanceNUMATopology.from_dict(given["text"])
    cells = []
    for cell in numa.GuestTopology.from_object(topology).cells:
        names = "id cpuset=cpus memory=memory_mb pagesize cpu_policy=policy"
        shown = _picked(cell, f"{names} cpu_thread_policy=thread_policy")
        shown["cpu_pinning"] = {str(mine): theirs for mine, theirs in cell.pins or ()}
        cells.append(shown)
    return {"cells": cells}


def _alias(given, _semantics):
    specs = {} if given["extra_spec"] is None else {pci.ALIAS_KEY: given["extra_spec"]}
    found = pci.requests_of_flavor(objects.Flavor(extra_specs=specs), None, given["aliases"])
    return {"requests": [_picked(each, "alias_name count spec") for each in found.requests]}


def _host(document):
    """A host's cells; None without a document."""
    if document is None:
        return None
    cells = []
    for given in document["cells"]:
        pages = [objects.NUMAPagesTopology(**page) for page in given["mempages"]]
        cells.append(objects.NUMACell(**{**_with_networks(given), "mempages": pages}))
    return numa.HostTopology.from_object(objects.NUMATopology(cells=cells))


def _guest(document):
    """A guest's cells; None without a document."""
    if document is None:
        return None
    cells = [{**given, "cpu_pinning_raw": given.get("cpu_pinning")} for given in document["cells"]]
    for each in cells:
        each.pop("cpu_pinning", None)
    plain = {**document, "cells": cells}
    return numa.GuestTopology.from_object(objects.InstanceNUMATopology.from_dict(plain))


def _limits(document):
    """Bounds of overcommitment of cells; None without a document."""
    if document is None:
        return None
    return numa.Limits.from_object(objects.NUMATopologyLimits(**_with_networks(document)))


def _with_networks(document):
    if "network_metadata" not in document:
        return document
    networks = objects.NetworkMetadata(**document["network_metadata"])
    return {**document, "network_metadata": networks}


def _pools(document):
    """A host's pools; None without a document."""
    return None if document is None else pci.Pools.from_text(json.dumps(document))


def _requests(document):
    return pci.requests_of(objects.InstancePCIRequests.from_dict(document or []))


def _picked(thing, names):
    """The attributes named ``key`` or ``key=attribute``; sets as sorted lists."""
    shown = {}
    for name in names.split():
        key, _equals, attribute = name.partition("=")
        value = getattr(thing, attribute or key)
        shown[key] = sorted(value) if isinstance(value, set | frozenset) else value
    return shown


def _fitted(guest):
    """The host cell of each cell of a guest, with its pages and pins."""
    if guest is None:
        return None
    shown = []
    for cell in guest.cells:
        entry = _picked(cell, "id pagesize")
        if cell.pins is not None:
            entry["cpu_pinning"] = {str(mine): theirs for mine, theirs in cell.pins}
        if cell.cores is not None:
            entry["cpu_topology"] = [1, *cell.cores]
        if cell.reserved:
            entry["cpuset_reserved"] = sorted(cell.reserved)
        shown.append(entry)
    return shown
