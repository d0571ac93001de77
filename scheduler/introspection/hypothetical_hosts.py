"""Hosts that are not there, and hosts taken away, in a fleet in memory."""

import dataclasses
import itertools
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from scheduler import errors, objects
from scheduler.hosts.columns import RATIO_BITS
from scheduler.hosts.table import HostTable
from scheduler.introspection.state import require_texts
from scheduler.numa import HostTopology
from scheduler.objects.fields import LARGEST_SIZE
from scheduler.replay.virtual_fleet import VirtualFleet

MOST_ADDED: Final = 20_000
_ZONE: Final = "availability_zone"
_TEXTS: Final = ("like", "name", _ZONE)
#: By the name in a profile the column of the table.
_SIZES: Final = {
    "vcpus": "vcpus_total",
    "memory_mb": "total_usable_ram_mb",
    "local_gb": "total_usable_disk_gb",
}
KEYS: Final = ("count", *_TEXTS, "aggregates", *_SIZES, *RATIO_BITS)
#: Values that a host has however many instances are on it.
_KEPT: Final = ("reported", "hypervisor_version", "bare_metal", "ratios_left_open", *RATIO_BITS)
_KEPT_IN_POOLS: Final = (
    *("cell_uuid", "hypervisor_type", "cpu_info", "supported_instances"),
    *("metrics", "pci_stats"),
)


def without(fleet: VirtualFleet, hosts: Sequence[str]) -> None:
    """Take the *hosts* out of *fleet*, servers included; InvalidRequest for one not there."""
    require_texts("without_hosts", hosts)
    for host in dict.fromkeys(hosts):
        with errors.as_invalid(f"--without-host {host}", ValueError):
            _known("host", host, fleet.table.rows_of_host)
        fleet.take_out(host)


def add(fleet: VirtualFleet, profiles: Sequence[Any]) -> None:
    """Add hosts to *fleet* as *profiles* describe them: just heard from, empty and enabled.

    InvalidRequest names the profile that is wrong, and what of it.
    """
    if not isinstance(profiles, list | tuple):
        raise errors.InvalidRequest(field="add_hosts", reason="not a list")
    table, number_left = fleet.table, MOST_ADDED
    for number, profile in enumerate(profiles, 1):
        with errors.as_invalid(f"--add-hosts (profile {number})", ValueError):
            _check(profile, number_left)
            like, count = profile["like"], profile.get("count", 1)
            row = _known("host", like, table.rows_of_host)[0]
            homes = _aggregates_of(profile, fleet, table.aggregates_of_host.get(like, ()))
        number_left -= count
        names = (f"{profile.get('name') or f'{like}-whatif'}-{n}" for n in itertools.count(1))
        free = (name for name in names if name not in table.rows_of_host)
        hosts, values = list(itertools.islice(free, count)), _empty_host(table, row, profile)
        table.aggregates_of_host = {**table.aggregates_of_host, **dict.fromkeys(hosts, homes)}
        for node_id, host in enumerate(hosts, max(table.row_of_node, default=0) + 1):
            service = {"host": host, "disabled": False, "forced_down": False}
            table.set_service(host, service, fleet.clock())
            identity = {"uuid": str(uuid.uuid5(uuid.NAMESPACE_DNS, host)), "node_id": node_id}
            table.put((host, host), {**values, **identity, "updated_at": fleet.clock()})


def _empty_host(table: HostTable, row: int, profile: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a host like that of *row*, but for what *profile* says; only its free devices."""
    vcpus, memory_mb, local_gb = (
        profile.get(name, table.value(row, column)) for name, column in _SIZES.items()
    )
    values = {
        **{name: table.value(row, name) for name in _KEPT},
        **{name: table.content(row, name) for name in _KEPT_IN_POOLS},
        "vcpus_total": vcpus,
        "total_usable_ram_mb": memory_mb,
        "free_ram_mb": memory_mb,
        "total_usable_disk_gb": local_gb,
        "free_disk_mb": local_gb * 1024,
    }
    for name in RATIO_BITS.keys() & profile.keys():
        values[name] = profile[name]
        values["ratios_left_open"] &= ~RATIO_BITS[name]
    topology = table.value(row, "numa_topology")
    return {**values, "numa_topology": None if topology is None else _emptied(topology)}


def _emptied(topology: HostTopology) -> HostTopology:
    empty: dict[str, Any] = {"cpu_usage": 0, "memory_usage_mb": 0, "pinned": frozenset()}
    return HostTopology(
        tuple(
            dataclasses.replace(
                cell, pages=tuple(dataclasses.replace(each, used=0) for each in cell.pages), **empty
            )
            for cell in topology.cells
        )
    )


# --- profiles: every function raises ValueError ---------------------------------------------------


def _check(profile: Any, most: int) -> None:
    if not isinstance(profile, Mapping):
        raise ValueError("not a mapping of names to values")
    for key in profile:
        _known("key", str(key), dict.fromkeys(KEYS))
    if "like" not in profile:
        raise ValueError("like is missing, which names a host with their hardware")
    for name in _TEXTS:
        if not isinstance(profile.get(name, ""), str):
            raise ValueError(f"{name} is no text: {profile[name]!r:.50}")
    names = profile.get("aggregates", ())
    if not isinstance(names, list | tuple) or not all(isinstance(each, str) for each in names):
        raise ValueError("aggregates: not a list of texts")
    count = profile.get("count", 1)
    if type(count) is not int or not 1 <= count <= most:
        raise ValueError(f"count {count!r:.50} is not a number from 1 to {most}")
    for name in (*_SIZES, *RATIO_BITS):
        value, kinds = profile.get(name, 1), (int, float) if name in RATIO_BITS else (int,)
        if type(value) not in kinds or not 0 < value <= LARGEST_SIZE:
            raise ValueError(f"{name} is {value!r:.50}; above 0, {LARGEST_SIZE} at most")


def _known(what: str, name: str, known: Mapping[Any, Any]) -> Any:
    if name not in known:
        names = [each for each in known if isinstance(each, str)]
        raise ValueError(f"no {what} {name!r}{errors.did_you_mean(name, names)}")
    return known[name]


def _aggregates_of(
    profile: Mapping[str, Any], fleet: VirtualFleet, homes: Iterable[objects.Aggregate]
) -> tuple[objects.Aggregate, ...]:
    """Aggregates of a host like one in *homes*, and those that *profile* names."""
    chosen, aggregates = list(homes), fleet.host_manager.aggregates
    by_name = {each.name: each for each in aggregates}
    chosen += [_known("aggregate", each, by_name) for each in profile.get("aggregates", ())]
    if _ZONE in profile:
        of_zone = {(each.metadata or {}).get(_ZONE): each for each in aggregates}
        chosen.append(_known("zone", profile[_ZONE], of_zone))
    return tuple({each.id: each for each in chosen}.values())
