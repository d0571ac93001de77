"""Hosts that are not there, and hosts taken away, in a fleet in memory."""

import dataclasses
import itertools
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final

from scheduler import errors, objects
from scheduler.db.tables import compute_nodes
from scheduler.hosts import columns
from scheduler.hosts import rows as host_rows
from scheduler.hosts.table import HostTable
from scheduler.introspection.state import require_texts
from scheduler.numa import HostTopology
from scheduler.objects.fields import LARGEST_SIZE
from scheduler.replay.virtual_fleet import VirtualFleet
from scheduler.semantics import Ratios

MOST_ADDED: Final = 20_000
_ZONE: Final = "availability_zone"
_NOT_GIVEN: Final = frozenset(
    {"id", "uuid", "host", "hypervisor_hostname", "service_id", "deleted", "mapped", "host_ip"}
    | {"created_at", "updated_at", "deleted_at", "extra_resources"}
)
COLUMNS: Final = tuple(each.name for each in compute_nodes.columns if each.name not in _NOT_GIVEN)
KEYS: Final = ("count", "name", "aggregates", "like", _ZONE, *COLUMNS)
_DOCUMENTS: Final = frozenset(columns.DOCUMENT_PARSERS) - {"aggregates"}
#: Documents that a host has however many instances are on it.
_SHARED_DOCUMENTS: Final = ("cpu_info", "supported_instances", "metrics")
_EMPTY: Final[Mapping[str, Any]] = {
    **dict.fromkeys(each.name for each in compute_nodes.columns),
    **dict.fromkeys(("vcpus_used", "memory_mb_used", "local_gb_used", "hypervisor_version"), 0),
    "hypervisor_type": "QEMU",
}


def without(fleet: VirtualFleet, hosts: Sequence[str]) -> None:
    """Take the *hosts* out of *fleet*, servers included; InvalidRequest for one not there."""
    require_texts("without_hosts", hosts)
    for host in dict.fromkeys(hosts):
        with errors.as_invalid(f"--without-host {host}", ValueError):
            _known("host", host, fleet.table.rows_of_host)
        fleet.take_out(host)


def add(fleet: VirtualFleet, profiles: Sequence[Any]) -> Iterator[str]:
    """Add hosts to *fleet* as *profiles* describe them, and yield a sentence about that.

    They have just reported, are empty and enabled.  InvalidRequest names the profile that is wrong,
    and what of it.
    """
    if not isinstance(profiles, list | tuple):
        raise errors.InvalidRequest(field="add_hosts", reason="not a list")
    table, manager = fleet.table, fleet.host_manager
    with manager.lock:
        aggregates = manager.aggregates
    made: list[str] = []
    for number, profile in enumerate(profiles, 1):
        with errors.as_invalid(f"--add-hosts (profile {number})", ValueError):
            _check(profile, MOST_ADDED - len(made))
            like = profile.get("like")
            row = None if like is None else _known("host", like, table.rows_of_host)[0]
            values = _row(profile, {} if row is None else _hardware(table, row))
            homes = _aggregates_of(profile, aggregates, table.aggregates_of_host.get(like, ()))
        example = row if row is not None else next(iter(table.rows.values()), None)
        cell = None if example is None else table.value(example, "cell_uuid")
        decoded = host_rows.values(
            SimpleNamespace(**values),
            Ratios.from_conf(fleet.conf),
            cell,
            knows_bare_metal=manager.KNOWS_BARE_METAL,
        )
        prefix = profile.get("name") or f"{like or 'new'}-whatif"
        names = (f"{prefix}-{place}" for place in itertools.count(1))
        free = (name for name in names if name not in table.rows_of_host)
        hosts = list(itertools.islice(free, profile.get("count", 1)))
        _put(table, hosts, homes, {**decoded, "updated_at": manager.clock()})
        made += hosts
    if made:
        yield f"{len(made)} host(s) added: {made[0]} to {made[-1]}"


def _put(
    table: HostTable,
    hosts: Sequence[str],
    homes: tuple[objects.Aggregate, ...],
    values: Mapping[str, Any],
) -> None:
    table.aggregates_of_host = {**table.aggregates_of_host, **dict.fromkeys(hosts, homes)}
    for node_id, host in enumerate(hosts, max(table.row_of_node, default=0) + 1):
        service = {"host": host, "disabled": False, "forced_down": False}
        table.set_service(host, service, values["updated_at"])
        own_uuid = str(uuid.uuid5(uuid.NAMESPACE_DNS, host))
        table.put((host, host), {**values, "uuid": own_uuid, "node_id": node_id})


# --- profiles: every function raises ValueError ---------------------------------------------------


def _check(profile: Any, most: int) -> None:
    if not isinstance(profile, Mapping):
        raise ValueError("not a mapping of names to values")
    for key in profile:
        _known("key", str(key), dict.fromkeys(KEYS))
    for name in ("like", _ZONE):
        if not isinstance(profile.get(name), str | None):
            raise ValueError(f"{name} is no text: {profile[name]!r:.50}")
    names = profile.get("aggregates") or ()
    if not isinstance(names, list | tuple) or not all(isinstance(each, str) for each in names):
        raise ValueError("aggregates: not a list of texts")
    count = profile.get("count", 1)
    if type(count) is not int or not 1 <= count <= most:
        raise ValueError(f"count {count!r} is not a number from 1 to {most}")


def _known(what: str, name: str, known: Mapping[Any, Any]) -> Any:
    if name not in known:
        names = [each for each in known if isinstance(each, str)]
        raise ValueError(f"no {what} {name!r}{errors.did_you_mean(name, names)}")
    return known[name]


def _row(profile: Mapping[str, Any], hardware: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of ``compute_nodes``."""
    given = {name: _value(name, profile[name]) for name in COLUMNS if name in profile}
    values = {**_EMPTY, **hardware, **given}
    for name in ("vcpus", "memory_mb", "local_gb"):
        if values[name] is None:
            raise ValueError(f"{name} is missing")
    for free, total in (("free_ram_mb", "memory_mb"), ("free_disk_gb", "local_gb")):
        if values[free] is None:
            values[free] = values[total] - (values[f"{total}_used"] or 0)
    return values


def _value(name: str, value: Any) -> Any:
    """A column's value; documents may be given as what their JSON stands for."""
    if name in _DOCUMENTS:
        return value if isinstance(value, str | None) else json.dumps(value)
    wanted = compute_nodes.c[name].type.python_type
    if isinstance(value, int | float) and not abs(value) <= LARGEST_SIZE:  # also what is no number
        raise ValueError(f"{name} is {value!r:.50}; {LARGEST_SIZE} at most")
    if value is None or isinstance(value, wanted) and not isinstance(value, bool):
        return value
    if wanted is float and type(value) is int:
        return float(value)
    raise ValueError(f"{name} is {value!r}, which is no {wanted.__name__}")


def _hardware(table: HostTable, row: int) -> dict[str, Any]:
    """Hardware of a host of the table, with nothing on it; only its free devices."""
    left_open = table.value(row, "ratios_left_open")
    topology = table.value(row, "numa_topology")
    pools = table.value(row, "pci_stats")
    return {
        "vcpus": table.value(row, "vcpus_total"),
        "memory_mb": table.value(row, "total_usable_ram_mb"),
        "local_gb": table.value(row, "total_usable_disk_gb"),
        "hypervisor_type": table.value(row, "hypervisor_type"),
        "hypervisor_version": table.value(row, "hypervisor_version"),
        **{
            name: None if left_open & bit else table.value(row, name)
            for name, bit in columns.RATIO_BITS.items()
        },
        **{name: table.content(row, name) for name in _SHARED_DOCUMENTS},
        "numa_topology": None if topology is None else _emptied(topology).to_text(),
        "pci_stats": None if pools is None else pools.to_text(),
    }


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


def _aggregates_of(
    profile: Mapping[str, Any],
    aggregates: Iterable[objects.Aggregate],
    homes: Iterable[objects.Aggregate],
) -> tuple[objects.Aggregate, ...]:
    """Aggregates of a host like one in *homes*, and those that *profile* names."""
    chosen = list(homes)
    by_name = {each.name: each for each in aggregates}
    chosen += [_known("aggregate", each, by_name) for each in profile.get("aggregates") or ()]
    if profile.get(_ZONE) is not None:
        of_zone = {(each.metadata or {}).get(_ZONE): each for each in aggregates}
        chosen.append(_known("zone", profile[_ZONE], of_zone))
    return tuple({each.id: each for each in chosen}.values())
