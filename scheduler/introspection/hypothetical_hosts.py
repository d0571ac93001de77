"""Hosts that are not there, and hosts taken away, on a copy of the table."""

from __future__ import annotations

import dataclasses
import itertools
import json
import uuid
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final

from scheduler import errors, objects
from scheduler.db.tables import compute_nodes
from scheduler.hosts import columns
from scheduler.hosts.rows import Ratios
from scheduler.hosts.table import HostTable, Key
from scheduler.hosts.updates import Decoder
from scheduler.introspection import worker
from scheduler.numa import HostTopology
from scheduler.objects.fields import LARGEST_SIZE

MOST_ADDED: Final = 20_000
_OF_PROFILE: Final = ("like", "count", "name", "aggregates", "availability_zone")
_NOT_GIVEN: Final = frozenset(
    {"id", "uuid", "host", "hypervisor_hostname", "service_id", "deleted", "mapped", "host_ip"}
    | {"created_at", "updated_at", "deleted_at", "extra_resources"}
)
_ALL: Final = tuple(each.name for each in compute_nodes.columns)
COLUMNS: Final = tuple(name for name in _ALL if name not in _NOT_GIVEN)
KEYS: Final = (*_OF_PROFILE, *COLUMNS)
_TEXTS: Final = frozenset(columns.DOCUMENT_PARSERS) - {"aggregates"}
_LEFT_EMPTY: Final = {"vcpus_used": 0, "memory_mb_used": 0, "local_gb_used": 0}
_ZONE: Final = "availability_zone"


def without(table: HostTable, hosts: Sequence[str]) -> None:
    """Take the *hosts* out of *table*; InvalidRequest for one that is not there."""
    for host in dict.fromkeys(hosts):
        if host not in table.rows_of_host:
            raise _unknown(f"--without-host {host}", "host", host, table.rows_of_host)
        for row in list(table.rows_of_host[host]):
            table.remove((host, table.text(row, "nodename")))


class Builder:
    """Adds hosts to *table* that have just reported at the moment *now*, empty and enabled.

    *aggregates* are all there are; *decode* and *ratios* are what the daemon reads rows with.
    """

    def __init__(
        self,
        table: HostTable,
        aggregates: Sequence[objects.Aggregate],
        decode: Decoder,
        ratios: Ratios,
        now: float,
    ) -> None:
        self._table = table
        self._aggregates = aggregates
        self._decode = decode
        self._ratios = ratios
        self._now = now
        self._homes = table.aggregates_of_host = dict(table.aggregates_of_host)
        self._node_id = max(table.row_of_node, default=0)

    def add(self, profiles: Sequence[Mapping[str, Any]]) -> list[str]:
        """The names of the hosts made from *profiles*; InvalidRequest names what is wrong."""
        made: list[str] = []
        for number, profile in enumerate(profiles, 1):
            argument = f"--add-hosts (profile {number})"
            _check_keys(profile, argument)
            count = _count(profile, argument, MOST_ADDED - len(made))
            like = self._like(profile, argument)
            row = self._row(profile, like, argument)
            aggregates = self._aggregates_of(profile, like, argument)
            prefix = str(profile.get("name") or f"{'new' if like is None else like[0]}-whatif")
            for host in self._names(prefix, count):
                self._put(host, row, aggregates, like)
                made.append(host)
        return made

    def _names(self, prefix: str, count: int) -> list[str]:
        known = self._table.rows_of_host
        free = (f"{prefix}-{number}" for number in itertools.count(1))
        return list(itertools.islice((name for name in free if name not in known), count))

    def _like(self, profile: Mapping[str, Any], argument: str) -> Key | None:
        host = profile.get("like")
        if host is None:
            return None
        _check_text("like", host, argument)
        rows = self._table.rows_of_host.get(host, ())
        if not rows:
            raise _unknown(argument, "host", str(host), self._table.rows_of_host)
        return host, self._table.text(rows[0], "nodename")

    def _row(self, profile: Mapping[str, Any], like: Key | None, argument: str) -> dict[str, Any]:
        """Columns of ``compute_nodes``."""
        values: dict[str, Any] = dict.fromkeys(_ALL)
        values.update(_LEFT_EMPTY, hypervisor_type="QEMU", hypervisor_version=0)
        if like is not None:
            values.update(self._hardware(like))
        given = {name: profile[name] for name in COLUMNS if name in profile}
        values.update({name: _value(name, value, argument) for name, value in given.items()})
        for name in ("vcpus", "memory_mb", "local_gb"):
            if values[name] is None:
                raise errors.InvalidRequest(field=argument, reason=f"{name} is missing")
        if given.get("free_ram_mb") is None:
            values["free_ram_mb"] = values["memory_mb"] - values["memory_mb_used"]
        if given.get("free_disk_gb") is None:
            values["free_disk_gb"] = values["local_gb"] - values["local_gb_used"]
        return values

    def _hardware(self, like: Key) -> dict[str, Any]:
        """Hardware of a host of the table, with nothing on it; only its free devices."""
        table = self._table
        row = table.rows[like]
        left_open = table.value(row, "ratios_left_open")
        topology = table.value(row, "numa_topology")
        pools = table.value(row, "pci_stats")
        return {
            "vcpus": table.value(row, "vcpus_total"),
            "memory_mb": table.value(row, "total_usable_ram_mb"),
            "local_gb": table.value(row, "total_usable_disk_gb"),
            "hypervisor_type": table.text(row, "hypervisor_type"),
            "hypervisor_version": table.value(row, "hypervisor_version"),
            **{
                name: None if left_open & bit else table.value(row, name)
                for name, bit in columns.RATIO_BITS.items()
            },
            "cpu_info": table.content(row, "cpu_info"),
            "supported_instances": table.content(row, "supported_instances"),
            "metrics": table.content(row, "metrics"),
            "numa_topology": None if topology is None else _emptied(topology).to_text(),
            "pci_stats": None if pools is None else pools.to_text(),
        }

    def _aggregates_of(
        self, profile: Mapping[str, Any], like: Key | None, argument: str
    ) -> tuple[objects.Aggregate, ...]:
        chosen = [] if like is None else list(self._table.aggregates_of_host.get(like[0], ()))
        by_name = {each.name: each for each in self._aggregates}
        worker.require_texts(f"{argument}: aggregates", profile.get("aggregates") or ())
        for name in profile.get("aggregates") or ():
            if name not in by_name:
                raise _unknown(argument, "aggregate", str(name), by_name)
            chosen.append(by_name[name])
        zone = profile.get(_ZONE)
        if zone is not None:
            _check_text(_ZONE, zone, argument)
            of_zone = {(each.metadata or {}).get(_ZONE): each for each in self._aggregates}
            if zone not in of_zone:
                raise _unknown(argument, "zone", str(zone), [str(each) for each in of_zone if each])
            chosen.append(of_zone[zone])
        return tuple({each.id: each for each in chosen}.values())

    def _put(
        self,
        host: str,
        row: Mapping[str, Any],
        aggregates: tuple[objects.Aggregate, ...],
        like: Key | None,
    ) -> None:
        table = self._table
        self._node_id += 1
        name = uuid.uuid5(uuid.NAMESPACE_DNS, host)
        own = SimpleNamespace(**{**row, "uuid": str(name), "host": host, "id": self._node_id})
        own.hypervisor_hostname = host
        cell = self._cell(like)
        self._homes[host] = aggregates
        table.set_service(host, {"host": host, "disabled": False, "forced_down": False}, self._now)
        values = {**self._decode(own, self._ratios, cell), "node_id": self._node_id}
        table.put((host, host), {**values, "updated_at": self._now})

    def _cell(self, like: Key | None) -> str | None:
        table = self._table
        example = next(iter(table.rows), None) if like is None else like
        cell: str | None = None if example is None else table.text(table.rows[example], "cell_uuid")
        return cell


def _emptied(topology: HostTopology) -> HostTopology:
    cells = []
    for cell in topology.cells:
        pages = tuple(dataclasses.replace(each, used=0) for each in cell.pages)
        cells.append(
            dataclasses.replace(
                cell, cpu_usage=0, memory_usage_mb=0, pinned=frozenset(), pages=pages
            )
        )
    return HostTopology(tuple(cells))


def _check_text(name: str, value: Any, argument: str) -> None:
    if not isinstance(value, str):
        raise errors.InvalidRequest(field=argument, reason=f"{name} is no text: {value!r:.50}")


def _check_keys(profile: Any, argument: str) -> None:
    if not isinstance(profile, Mapping):
        raise errors.InvalidRequest(field=argument, reason="not a mapping of names to values")
    for key in profile:
        if key not in KEYS:
            raise _unknown(argument, "key", str(key), KEYS)


def _count(profile: Mapping[str, Any], argument: str, most: int) -> int:
    count = profile.get("count", 1)
    if type(count) is not int or not 1 <= count <= most:
        reason = f"count {count!r} is not a number from 1 to {most}"
        raise errors.InvalidRequest(field=argument, reason=reason)
    return count


def _value(name: str, value: Any, argument: str) -> Any:
    """A column's value; documents may be given as what their JSON stands for."""
    if name in _TEXTS:
        return value if isinstance(value, str | None) else json.dumps(value)
    wanted = compute_nodes.c[name].type.python_type
    if isinstance(value, int | float) and not abs(value) <= LARGEST_SIZE:  # also what is no number
        reason = f"{name} is {value!r:.50}; {LARGEST_SIZE} at most"
        raise errors.InvalidRequest(field=argument, reason=reason)
    if value is None or isinstance(value, wanted) and not isinstance(value, bool):
        return value
    if wanted is float and type(value) is int:
        return float(value)
    reason = f"{name} is {value!r}, which is no {wanted.__name__}"
    raise errors.InvalidRequest(field=argument, reason=reason)


def _unknown(argument: str, what: str, name: str, known: Any) -> errors.InvalidRequest:
    reason = f"no {what} {name!r}{errors.did_you_mean(name, known)}"
    return errors.InvalidRequest(field=argument, reason=reason)
