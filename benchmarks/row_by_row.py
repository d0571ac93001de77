"""Newton's default chain and weighers as plain Python over one object per host.

What the engine's speed is compared with, and its answers as well.  It decides the simple requests:
no forced hosts, no alternates, one server at a time.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.fleet import Plain
from scheduler import objects

DEVICES_COUNTED = 99


@dataclass(slots=True)
class Host:
    """One host's numbers and documents, parsed once."""

    name: str
    total_ram_mb: int
    free_ram_mb: int
    total_disk_mb: int
    free_disk_mb: int
    vcpus: int
    vcpus_used: int
    io_ops: int
    failed_builds: int
    cpu_ratio: float
    ram_ratio: float
    disk_ratio: float
    hypervisor_version: int
    devices: int
    supported: frozenset[tuple[str, ...]]
    capabilities: Mapping[str, Any]
    zones: frozenset[str]
    is_enabled: bool
    seen_at: str


def hosts_of(fleet: Plain) -> list[Host]:
    """The hosts of a fleet's rows."""
    services = {each["host"]: each for each in fleet["services"]}
    zones: dict[str, set[str]] = {}
    for aggregate in fleet["aggregates"]:
        if zone := aggregate["metadata"].get("availability_zone"):
            for host in aggregate["hosts"]:
                zones.setdefault(host, set()).add(zone)
    return [
        _host(node, services[node["host"]], frozenset(zones.get(node["host"], {"nova"})))
        for node in fleet["compute_nodes"]
    ]


def _host(node: Plain, service: Plain, zones: frozenset[str]) -> Host:
    stats = json.loads(node["stats"])
    return Host(
        name=node["host"],
        total_ram_mb=node["memory_mb"],
        free_ram_mb=node["free_ram_mb"],
        total_disk_mb=node["local_gb"] * 1024,
        free_disk_mb=min(node["free_disk_gb"], node["disk_available_least"]) * 1024,
        vcpus=node["vcpus"],
        vcpus_used=node["vcpus_used"],
        io_ops=int(stats.get("io_workload", 0)),
        failed_builds=int(stats.get("failed_builds", 0)),
        cpu_ratio=node["cpu_allocation_ratio"],
        ram_ratio=node["ram_allocation_ratio"],
        disk_ratio=node["disk_allocation_ratio"],
        hypervisor_version=node["hypervisor_version"],
        devices=_devices(node["pci_stats"]),
        supported=frozenset(tuple(each) for each in json.loads(node["supported_instances"])),
        capabilities={"cpu_info": json.loads(node["cpu_info"]), **stats},
        zones=zones,
        is_enabled=not (service["disabled"] or service["forced_down"]),
        seen_at=service["last_seen_up"],
    )


def _devices(text: str | None) -> int:
    pools = json.loads(text)["nova_object.data"]["objects"] if text else ()
    return sum(pool["nova_object.data"]["count"] for pool in pools)


def decide(hosts: Sequence[Host], spec: objects.RequestSpec, alive_since: str) -> Host | None:
    """The best host for *spec*, on which it is then consumed; None if there is none.

    A service that was heard from before *alive_since* (as in the rows) is down.
    """
    left = list(hosts)
    for passes in FILTERS:
        left = [host for host in left if passes(host, spec, alive_since)]
    if not left:
        return None
    best = max(zip(_weights(left), range(0, -len(left), -1), left, strict=True))[2]
    consume(best, spec, 1)
    return best


def consume(host: Host, spec: objects.RequestSpec, times: int) -> None:
    """Take what *spec* wants from *host*, or (-1) give it back."""
    host.free_ram_mb -= times * spec.flavor.memory_mb
    host.free_disk_mb -= times * _disk_mb(spec)
    host.vcpus_used += times * spec.flavor.vcpus
    host.io_ops += times


def _disk_mb(spec: objects.RequestSpec) -> int:
    flavor = spec.flavor
    return int(1024 * (flavor.root_gb + flavor.ephemeral_gb) + flavor.swap)


def _not_tried(host: Host, spec: objects.RequestSpec, _alive_since: str) -> bool:
    retry = spec.retry
    return retry is None or host.name not in [each.host for each in retry.hosts]


def _in_zone(host: Host, spec: objects.RequestSpec, _alive_since: str) -> bool:
    return not spec.availability_zone or spec.availability_zone in host.zones


def _has_ram(host: Host, spec: objects.RequestSpec, _alive_since: str) -> bool:
    wanted, total = spec.flavor.memory_mb, host.total_ram_mb
    return wanted <= total and wanted <= total * host.ram_ratio - (total - host.free_ram_mb)


def _has_disk(host: Host, spec: objects.RequestSpec, _alive_since: str) -> bool:
    wanted, total = _disk_mb(spec), host.total_disk_mb
    return wanted <= total and wanted <= total * host.disk_ratio - (total - host.free_disk_mb)


def _is_up(host: Host, _spec: objects.RequestSpec, alive_since: str) -> bool:
    return host.is_enabled and host.seen_at >= alive_since


def _is_capable(host: Host, spec: objects.RequestSpec, _alive_since: str) -> bool:
    for name, wanted in spec.flavor.extra_specs.items():
        scope, _colon, path = name.rpartition(":")
        if scope == "capabilities" and str(host.capabilities.get(path)) != wanted:
            return False
    return True


def _runs_image(host: Host, spec: objects.RequestSpec, _alive_since: str) -> bool:
    properties = spec.image.properties
    names = ("hw_architecture", "img_hv_type", "hw_vm_mode")
    wanted = {properties.get(name) for name in names} - {None}
    return not wanted or any(wanted <= set(triple) for triple in host.supported)


def _keeps_apart(host: Host, spec: objects.RequestSpec, _alive_since: str) -> bool:
    group = spec.instance_group
    return group is None or group.policy != "anti-affinity" or host.name not in group.hosts


def _keeps_together(host: Host, spec: objects.RequestSpec, _alive_since: str) -> bool:
    group = spec.instance_group
    if group is None or group.policy != "affinity" or not group.hosts:
        return True
    return host.name in group.hosts


FILTERS: Sequence[Callable[[Host, objects.RequestSpec, str], bool]] = (
    _not_tried,
    _in_zone,
    _has_ram,
    _has_disk,
    _is_up,
    _is_capable,
    _runs_image,
    _keeps_apart,
    _keeps_together,
)

#: Raw value, lower bound (None: the lowest value) and multiplier of the weighers that matter here.
WEIGHERS: Sequence[tuple[Callable[[Host], float], float | None, float]] = (
    (lambda host: host.free_ram_mb, 0.0, 1.0),
    (lambda host: host.free_disk_mb, 0.0, 1.0),
    (lambda host: host.io_ops, 0.0, -1.0),
    (lambda host: host.vcpus * host.cpu_ratio - host.vcpus_used, 0.0, 1.0),
    (lambda host: host.failed_builds, None, -1_000_000.0),
    (lambda host: 100 - min(host.devices, DEVICES_COUNTED), None, 1.0),
    (lambda host: host.hypervisor_version, None, 1.0),
)


def _weights(hosts: Sequence[Host]) -> list[float]:
    totals = [0.0] * len(hosts)
    if len(hosts) < 2:
        return totals
    for raw_of, lower, multiplier in WEIGHERS:
        raw = [raw_of(host) for host in hosts]
        low = min(raw) if lower is None else lower
        high = max(raw)
        if high == low:
            continue
        for place, each in enumerate(raw):
            share = (min(max(each, low), high) - low) / (high - low)
            totals[place] += share * multiplier
    return totals
