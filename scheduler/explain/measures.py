"""Wishes of a filter and what hosts have of them, in numbers or in words.

``measured`` is over columns and says how much a host lacks; ``DESCRIPTIONS``, by reason code, are
of one host.  What is enough is for the filter to say, and where its reason says everything there is
no entry here.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from scheduler import numa, pci
from scheduler.filters import host_attributes
from scheduler.filters.aggregate_instance_extra_specs import demands_of
from scheduler.filters.base import extra_specs_of, hinted
from scheduler.filters.bounds import MaximumFilter, OvercommitFilter, ResourceFilter
from scheduler.hosts import aggregate_metadata
from scheduler.hosts.candidates import Candidates
from scheduler.hosts.host_state import POOLS, TOPOLOGY, HostState, guest_of

#: Noun and unit of a resource, by its limit.
_RESOURCES = {
    "memory_mb": ("MiB of memory", "MiB "),
    "disk_gb": ("MiB of disk", "MiB "),
    "vcpu": ("vCPUs", ""),
}
_COUNTED = {"num_io_ops": "operations going on", "num_instances": "servers"}
_OF_IMAGE = {
    "hw_architecture": "architecture",
    "img_hv_type": "hypervisor",
    "hw_vm_mode": "mode",
    "img_hv_requested_version": "version",
    "hw_maxphysaddr_bits": "address bits",
}
Description = Callable[[Any, HostState, Any], tuple[str, str]]
"""Called with filter, host and request; what is wanted, and what the host has."""


class Measured(NamedTuple):
    """Per host how much there is and how much is missing; both texts follow a number."""

    wanted: str
    found: np.ndarray
    missing: np.ndarray
    unit: str


def number(value: float) -> str:
    """A number for people: no more than two decimals."""
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.2f}"


def measured(each: Any, code: str, hosts: Candidates, request: Any) -> Measured | None:
    """Numbers of *hosts* for a reason of filter *each*; None where it is about none."""
    if isinstance(each, MaximumFilter):
        maximum, found = each.maximum(hosts), getattr(hosts, each.column)
        unit = _COUNTED.get(each.column, each.column)
        wanted = f"fewer {unit} than is allowed"
        if not isinstance(maximum, np.ndarray):
            wanted = f"{number(maximum)} {unit} at most, the new server included"
        return Measured(wanted, found, found - maximum + 1, unit)
    if not isinstance(each, ResourceFilter):
        return None
    amount, total, free = each.amounts(hosts, request)
    noun, unit = _RESOURCES.get(each.limit, (each.limit, ""))
    wanted = f"{number(amount)} {noun}"
    match code.rpartition(".")[2]:
        case "physical":
            return Measured(wanted, total, amount - total, f"{unit}in all")
        case "insufficient" if isinstance(each, OvercommitFilter):
            left = total * each.ratio(hosts) - (total - free)
            return Measured(wanted, left, amount - left, f"{unit}free")
        case "different":
            return Measured(f"{wanted} exactly", free, np.abs(amount - free), f"{unit}free")
    return None


def describe(each: Any, code: str, host: HostState, request: Any) -> tuple[str | None, str]:
    """The requirement and what one host has of it, as texts."""
    if numbers := measured(each, code, Candidates.alone(host), request):
        return numbers.wanted, f"{number(float(numbers.found[0]))} {numbers.unit}"
    if code in DESCRIPTIONS:
        return DESCRIPTIONS[code](each, host, request)
    return None, "does not pass"


def _list(values: Iterable[Any], if_none: str = "none") -> str:
    return ", ".join(sorted(map(str, values))) or if_none


def _metadata(host: HostState, keys: Iterable[str]) -> str:
    found = ((key, aggregate_metadata.split_values(host.aggregates, key)) for key in keys)
    texts = [f"{key} = {_list(values)}" if values else f"no {key}" for key, values in found]
    return "; ".join(texts) or "no metadata"


def _zone(each: Any, host: HostState, request: Any) -> tuple[str, str]:
    zones = aggregate_metadata.split_values(host.aggregates, "availability_zone")
    return f"zone {request.availability_zone!r}", f"in zone {_list(zones or {each.default_zone})}"


def _disabled(_filter: Any, host: HostState, _request: Any) -> tuple[str, str]:
    reason = host.service.get("disabled_reason")
    return "an enabled compute service", f"disabled{f' ({reason})' if reason else ''}"


def _down(_filter: Any, host: HostState, _request: Any) -> tuple[str, str]:
    wanted, seen = "a compute service that is up", host.table.value(host.row, "service_last_seen")
    if host.service.get("forced_down"):
        return wanted, "forced down"
    if seen == float("-inf"):
        return wanted, "never heard from"
    ago = host.scope.now - seen
    when = f"{ago:.0f} s ago" if ago >= 0 else f"{-ago:.0f} s in the future: compare the clocks"
    return wanted, f"last heard from {when}"


def _aggregate_specs(_filter: Any, host: HostState, request: Any) -> tuple[str, str]:
    wanted = demands_of(request)
    text = ", ".join(f"{key} {value}" for key, value in wanted)
    return f"aggregates with {text}", _metadata(host, dict(wanted))


def _capabilities(_filter: Any, host: HostState, request: Any) -> tuple[str, str]:
    wanted = {
        key: value
        for key, value in extra_specs_of(request).items()
        if ":" not in key or key.startswith(("capabilities:", "hw:maxphysaddr"))
    }
    found = "; ".join(f"{key}: {_capability(host, key)}" for key in wanted)
    return ", ".join(f"{key} {value}" for key, value in wanted.items()), found


def _capability(host: HostState, key: str) -> str:
    """The value on the host that the extra spec *key* leads to."""
    path = key.removeprefix("capabilities:").split(":")
    if path[0] == "hw":
        path = ["cpu_info", "maxphysaddr", "bits"]
    found: list[str] = []

    def keep(text: str) -> bool:
        found.append(text)
        return False

    host_attributes.judge(Candidates.alone(host), path, keep)
    return found[0] if found else "not reported"


def _image(_filter: Any, host: HostState, request: Any) -> tuple[str, str]:
    values = {text: request.image.properties.get(name) for name, text in _OF_IMAGE.items()}
    wanted = ", ".join(f"{text} {value}" for text, value in values.items() if value)
    runs = _list("/".join(map(str, each)) for each in host.supported_instances or ())
    version = f", version {host.hypervisor_version}" if values["version"] else ""
    return wanted or "the default architecture", f"runs {runs}{version}"


def _isolation(_filter: Any, host: HostState, request: Any) -> tuple[str, str]:
    fields = {} if request.image is None else request.image.properties.set_fields()
    keys = [key for key in aggregate_metadata.keys(host.aggregates) if key in fields]
    wanted = ", ".join(f"{key} = {fields[key]}" for key in keys)
    return f"aggregates for images with {wanted}", _metadata(host, keys)


def _project(each: Any, host: HostState, request: Any) -> tuple[str, str]:
    keys = filter(each.is_tenant_key, aggregate_metadata.keys(host.aggregates))
    return f"aggregates for the project {request.project_id}", _metadata(host, keys)


def _group_full(_filter: Any, host: HostState, request: Any) -> tuple[str, str]:
    members = set(request.instance_group.members or ()) & host.instances.keys()
    known = f": {_list(members)}" if members else ""
    return "a host without others of the server group (anti-affinity)", f"has members{known}"


def _avoided(_filter: Any, host: HostState, request: Any) -> tuple[str, str]:
    found = set(hinted(request, "different_host")) & host.instances.keys()
    return "a host without the servers of the hint different_host", f"runs {_list(found)}"


def _address(_filter: Any, host: HostState, request: Any) -> tuple[str, str]:
    near, mask = _list(hinted(request, "build_near_host_ip")), _list(hinted(request, "cidr"), "")
    return f"an address near {near} {mask}".rstrip(), str(host.host_ip)


def _metrics(each: Any, host: HostState, _request: Any) -> tuple[str, str]:
    missing = each.names - {metric.name for metric in host.metrics or ()}
    return f"the metrics {_list(each.names)}", f"lacks {_list(missing)}"


def _cells(_filter: Any, host: HostState, request: Any) -> tuple[str, str]:
    guest = guest_of(request)
    topology = host.table.value(host.row, TOPOLOGY)
    wanted = "; ".join(map(_guest_cell, guest.cells)) if guest is not None else "no cells"
    found = "; ".join(map(_host_cell, topology.cells)) if topology else "reports no NUMA cells"
    return wanted, found


def _guest_cell(cell: numa.GuestCell) -> str:
    sizes = {-1: "small", -2: "large", -3: "any"}
    size = cell.pagesize and sizes.get(cell.pagesize, f"{cell.pagesize} KiB")
    cpus = f"{len(cell.cpus)}{' pinned' if cell.is_pinned else ''} CPUs"
    pages = f" in pages ({size})" if size else ""
    return f"a cell with {cpus} and {cell.memory_mb} MiB{pages}"


def _host_cell(cell: numa.HostCell) -> str:
    cpus = f"{len(cell.cpus)} CPUs ({len(cell.free_pinnable)} to pin)"
    pages = "".join(
        f", {each.free_kb // each.size_kb} free pages of {each.size_kb} KiB" for each in cell.pages
    )
    return f"cell {cell.id}: {cpus}, {cell.avail_memory_mb} MiB free{pages}"


def _devices(_filter: Any, host: HostState, request: Any) -> tuple[str, str]:
    wanted = ", ".join(map(_device_request, pci.requests_of(request.pci_requests)))
    pools = host.table.value(host.row, POOLS)
    if pools is None:
        return wanted, "never reported its PCI devices"
    free = [
        f"{each.count} × {each.values['vendor_id']}:{each.values['product_id']}"
        for each in pools.pools
    ]
    return wanted, f"free: {', '.join(free) or 'none'}"


def _device_request(request: pci.Request) -> str:
    specs = (",".join(f"{key}={value}" for key, value in spec) for spec in request.specs)
    return f"{request.count} × PCI device {request.alias_name or ' or '.join(specs)}"


DESCRIPTIONS: dict[str, Description] = {
    "availability_zone.other": _zone,
    "compute.disabled": _disabled,
    "compute.down": _down,
    **dict.fromkeys(("aggregate_specs.missing", "aggregate_specs.refused"), _aggregate_specs),
    **dict.fromkeys(("capabilities.missing", "capabilities.refused"), _capabilities),
    **dict.fromkeys(("image.unknown", "image.unsupported"), _image),
    **dict.fromkeys(("image.hypervisor_version", "image.address_bits"), _image),
    "image_isolation.other": _isolation,
    "multitenancy.other": _project,
    "affinity.elsewhere": lambda _f, h, r: (
        f"a host of the server group: {_list(r.instance_group.hosts or ())}",
        f"{h.host} is none of them",
    ),
    "anti_affinity.full": _group_full,
    "different_host.present": _avoided,
    "cidr.far": _address,
    "metrics.missing": _metrics,
    "aggregate_type.not_named": lambda _f, h, r: (
        f"aggregates for the flavor {getattr(r.flavor, 'name', None)}",
        _metadata(h, ["instance_type"]),
    ),
    **dict.fromkeys(("numa.absent", "numa.unfit"), _cells),
    **dict.fromkeys(("pci.unreported", "pci.lacking"), _devices),
}
