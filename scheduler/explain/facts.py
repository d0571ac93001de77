"""What a condition wants and what one host has instead, in words, for what cannot be counted.

One entry per reason code.  Only asked for a few hosts, when somebody wants to know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from scheduler.explain import hardware
from scheduler.filters.base import extra_specs_of, hinted
from scheduler.hosts import aggregate_metadata
from scheduler.hosts.host_state import HostState

Fact = Callable[[Any, HostState, Any], tuple[str, str]]
"""Called with filter, host and request; what is wanted, and what the host has."""


def _list(values: Iterable[Any], if_none: str = "none") -> str:
    return ", ".join(sorted(map(str, values))) or if_none


def _metadata(state: HostState, keys: Iterable[str]) -> str:
    told = []
    for key in keys:
        values = aggregate_metadata.split_values(state.aggregates, key)
        told.append(f"{key} = {_list(values)}" if values else f"no {key}")
    return "; ".join(told) or "no metadata"


def _zone(each: Any, state: HostState, request: Any) -> tuple[str, str]:
    zones = aggregate_metadata.split_values(state.aggregates, "availability_zone")
    return f"zone {request.availability_zone!r}", f"in zone {_list(zones or {each.default_zone})}"


def _disabled(_filter: Any, state: HostState, _request: Any) -> tuple[str, str]:
    reason = state.service.get("disabled_reason")
    return "an enabled compute service", f"disabled{f' ({reason})' if reason else ''}"


def _down(_filter: Any, state: HostState, _request: Any) -> tuple[str, str]:
    wanted = "a compute service that is up"
    if state.service.get("forced_down"):
        return wanted, "forced down"
    seen = state.table.last_seen(state.host)
    if seen == float("-inf"):
        return wanted, "never heard from"
    ago = state.scope.now - seen
    when = f"{ago:.0f} s ago" if ago >= 0 else f"{-ago:.0f} s in the future: compare the clocks"
    return wanted, f"last heard from {when}"


def _aggregate_specs(_filter: Any, state: HostState, request: Any) -> tuple[str, str]:
    prefix = "aggregate_instance_extra_specs:"
    wanted = {
        key.removeprefix(prefix): value
        for key, value in extra_specs_of(request).items()
        if ":" not in key or key.startswith(prefix)
    }
    text = ", ".join(f"{key} {value}" for key, value in wanted.items())
    return f"aggregates with {text}", _metadata(state, wanted)


def _capabilities(_filter: Any, state: HostState, request: Any) -> tuple[str, str]:
    told = [
        f"{key} {value}"
        for key, value in extra_specs_of(request).items()
        if ":" not in key or key.startswith(("capabilities:", "hw:maxphysaddr"))
    ]
    keys = [text.split()[0] for text in told]
    found = [f"{key}: {hardware.capability(state, key)}" for key in keys]
    return ", ".join(told), "; ".join(found)


def _image(_filter: Any, state: HostState, request: Any) -> tuple[str, str]:
    names = {
        "hw_architecture": "architecture",
        "img_hv_type": "hypervisor",
        "hw_vm_mode": "mode",
        "img_hv_requested_version": "version",
        "hw_maxphysaddr_bits": "address bits",
    }
    values = {text: request.image.properties.get(name) for name, text in names.items()}
    wanted = ", ".join(f"{text} {value}" for text, value in values.items() if value)
    runs = _list("/".join(map(str, each)) for each in state.supported_instances or ())
    version = f", version {state.hypervisor_version}" if values["version"] else ""
    return wanted or "the default architecture", f"runs {runs}{version}"


def _isolation(_filter: Any, state: HostState, request: Any) -> tuple[str, str]:
    fields = {} if request.image is None else request.image.properties.set_fields()
    keys = [key for key in aggregate_metadata.keys(state.aggregates) if key in fields]
    wanted = ", ".join(f"{key} = {fields[key]}" for key in keys)
    return f"aggregates for images with {wanted}", _metadata(state, keys)


def _project(each: Any, state: HostState, request: Any) -> tuple[str, str]:
    keys = filter(each.is_tenant_key, aggregate_metadata.keys(state.aggregates))
    return f"aggregates for the project {request.project_id}", _metadata(state, keys)


def _isolated(each: Any, _state: HostState, request: Any) -> tuple[str, str]:
    image = request.image.id if request.image is not None else None
    return f"an isolated host ({_list(each.hosts)}) for the image {image}", "not isolated"


def _kept(_filter: Any, _state: HostState, request: Any) -> tuple[str, str]:
    image = request.image.id if request.image is not None else None
    return f"a host for the image {image}", "kept for isolated images"


def _group_elsewhere(_filter: Any, state: HostState, request: Any) -> tuple[str, str]:
    hosts = _list(request.instance_group.hosts or ())
    return f"a host of the server group: {hosts}", f"{state.host} is none of them"


def _group_full(_filter: Any, state: HostState, request: Any) -> tuple[str, str]:
    members = set(request.instance_group.members or ()) & state.instances.keys()
    known = f": {_list(members)}" if members else ""
    return "a host without others of the server group (anti-affinity)", f"has members{known}"


def _avoided(_filter: Any, state: HostState, request: Any) -> tuple[str, str]:
    found = set(hinted(request, "different_host")) & state.instances.keys()
    return "a host without the servers of the hint different_host", f"runs {_list(found)}"


def _joined(_filter: Any, _state: HostState, request: Any) -> tuple[str, str]:
    return f"a host of one of {_list(hinted(request, 'same_host'))}", "runs none of them"


def _address(_filter: Any, state: HostState, request: Any) -> tuple[str, str]:
    near = _list(hinted(request, "build_near_host_ip"))
    return f"an address near {near} {_list(hinted(request, 'cidr'), '')}".rstrip(), str(
        state.host_ip
    )


def _tried(_filter: Any, state: HostState, _request: Any) -> tuple[str, str]:
    return "a host that was not tried yet", f"{state.host} was tried"


def _query(_filter: Any, _state: HostState, request: Any) -> tuple[str, str]:
    return f"a match for the query {_list(hinted(request, 'query'))}", "no match"


def _metrics(each: Any, state: HostState, _request: Any) -> tuple[str, str]:
    missing = each.names - {metric.name for metric in state.metrics or ()}
    return f"the metrics {_list(each.names)}", f"lacks {_list(missing)}"


def _trust(_filter: Any, _state: HostState, request: Any) -> tuple[str, str]:
    return f"trust level {extra_specs_of(request).get('trust:trusted_host')}", "another level"


def _flavor_mix(_filter: Any, state: HostState, request: Any) -> tuple[str, str]:
    wanted = None if request.flavor is None else request.flavor.name
    return f"no servers but of flavor {wanted}", f"runs {len(state.instances)} servers"


def _flavor_named(_filter: Any, state: HostState, request: Any) -> tuple[str, str]:
    wanted = None if request.flavor is None else request.flavor.name
    return f"aggregates for the flavor {wanted}", _metadata(state, ["instance_type"])


FACTS: dict[str, Fact] = {
    "availability_zone.other": _zone,
    "compute.disabled": _disabled,
    "compute.down": _down,
    "aggregate_specs.missing": _aggregate_specs,
    "aggregate_specs.refused": _aggregate_specs,
    "capabilities.missing": _capabilities,
    "capabilities.refused": _capabilities,
    "image.unknown": _image,
    "image.unsupported": _image,
    "image.hypervisor_version": _image,
    "image.address_bits": _image,
    "image_isolation.other": _isolation,
    "multitenancy.other": _project,
    "isolated.host_is_not": _isolated,
    "isolated.image_is_not": _kept,
    "affinity.elsewhere": _group_elsewhere,
    "anti_affinity.full": _group_full,
    "different_host.present": _avoided,
    "same_host.absent": _joined,
    "cidr.far": _address,
    "retry.tried": _tried,
    "json.no_match": _query,
    "metrics.missing": _metrics,
    "trusted.other": _trust,
    "type.other": _flavor_mix,
    "aggregate_type.not_named": _flavor_named,
    "numa.threads": hardware.threads,
    "numa.absent": hardware.cells,
    "numa.unfit": hardware.cells,
    "pci.unreported": hardware.devices,
    "pci.lacking": hardware.devices,
    "exact_core.unknown": lambda _filter, _state, request: (
        f"{request.vcpus} vCPUs exactly",
        "reports no vCPUs",
    ),
}
