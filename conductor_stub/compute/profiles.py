"""Kinds of compute hosts, the YAML files that define them, and fleets made of them."""

from __future__ import annotations

import dataclasses
import difflib
import pathlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaml

from scheduler import errors

DEFAULT_FILE = pathlib.Path(__file__).parents[1] / "profiles" / "default.yaml"
ZONE_KEY = "availability_zone"


@dataclasses.dataclass(frozen=True)
class NumaCell:
    """One NUMA node of a host; *pages* is page size in KiB -> number of pages."""

    cpus: frozenset[int]
    memory_mb: int
    siblings: tuple[frozenset[int], ...] = ()
    socket: int | None = None
    pages: Mapping[int, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class PciPool:
    """Like devices of a host that are handed out one by one."""

    vendor_id: str
    product_id: str
    count: int
    numa_node: int | None = None
    tags: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class HostKind:
    """One size of host: exactly *count* of them, or a *share* of those that remain."""

    name: str
    vcpus: int
    memory_mb: int
    local_gb: int
    share: int = 1
    count: int | None = None
    cpu_allocation_ratio: float = 16.0
    ram_allocation_ratio: float = 1.5
    disk_allocation_ratio: float = 1.0
    hypervisor_type: str = "QEMU"
    hypervisor_version: int = 7_002_000
    cpu_info: Mapping[str, Any] | None = None
    supported_instances: tuple[tuple[str, str, str], ...] = (
        ("x86_64", "qemu", "hvm"),
        ("x86_64", "kvm", "hvm"),
    )
    numa_cells: tuple[NumaCell, ...] = ()
    pci_pools: tuple[PciPool, ...] = ()
    metrics: Mapping[str, float] = dataclasses.field(default_factory=dict)
    availability_zones: tuple[str, ...] = ()
    aggregates: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    stats: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class HostPlan:
    """One host to be: its name (service host and node alike), kind and zone."""

    name: str
    kind: HostKind
    availability_zone: str | None = None

    @property
    def aggregates(self) -> dict[str, dict[str, str]]:
        """Name -> metadata of every aggregate the host belongs in; a zone is an aggregate too."""
        found = {name: dict(metadata) for name, metadata in self.kind.aggregates.items()}
        if self.availability_zone is not None:
            found.setdefault(self.availability_zone, {})[ZONE_KEY] = self.availability_zone
        return found


@dataclasses.dataclass(frozen=True)
class Profile:
    """The kinds of hosts of one fleet."""

    kinds: tuple[HostKind, ...]
    source: str = "profile"

    @property
    def natural_size(self) -> int:
        """The number of hosts without any number given."""
        return sum(kind.share if kind.count is None else kind.count for kind in self.kinds)

    def plan(self, hosts: int, prefix: str = "compute") -> list[HostPlan]:
        """Lay out hosts ``<prefix>-01`` and so on, interleaved; raises ConfigurationError."""
        left = self._amounts(hosts)
        total = dict(left)
        plans: list[HostPlan] = []
        for number in range(1, hosts + 1):
            # the kind that lags most behind its part of the fleet comes next
            index = max(left, key=lambda i: (left[i] / total[i] if total[i] else 0.0, -i))
            kind = self.kinds[index]
            made = total[index] - left[index]
            left[index] -= 1
            zones = kind.availability_zones
            zone = zones[made % len(zones)] if zones else None
            plans.append(HostPlan(f"{prefix}-{number:02d}", kind, zone))
        return plans

    def _amounts(self, hosts: int) -> dict[int, int]:
        """Kind's index -> how many of it: counts first, the rest by largest remainder."""
        amounts = {i: kind.count or 0 for i, kind in enumerate(self.kinds)}
        rest = hosts - sum(amounts.values())
        shares = {i: kind.share for i, kind in enumerate(self.kinds) if kind.count is None}
        if rest < 0 or (rest and not shares):
            raise errors.ConfigurationError(
                option=f"{self.source}: hosts",
                reason=f"the counts add up to {hosts - rest} hosts, but {hosts} are wanted",
            )
        whole = sum(shares.values())
        exact = {i: rest * share / whole for i, share in shares.items()}
        amounts.update({i: int(part) for i, part in exact.items()})
        missing = rest - sum(int(part) for part in exact.values())
        for i in sorted(exact, key=lambda i: int(exact[i]) - exact[i])[:missing]:
            amounts[i] += 1
        return amounts


def merged_aggregates(plans: Sequence[HostPlan]) -> dict[str, dict[str, str]]:
    """All aggregates with their metadata; ConfigurationError where plans disagree."""
    merged: dict[str, dict[str, str]] = {}
    for plan in plans:
        for name, metadata in plan.aggregates.items():
            known = merged.setdefault(name, {})
            for key, value in metadata.items():
                if known.setdefault(key, value) != value:
                    raise errors.ConfigurationError(
                        option=f"aggregates.{name}.{key}",
                        reason=f"is both {known[key]!r} and {value!r}",
                    )
    return merged


Check = Callable[[Any, str], Any]


class _Wrong(Exception):
    """A value that cannot be used; *where* is its path in the document."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(reason)
        self.where = where


def load(path: str | pathlib.Path) -> Profile:
    """Read the profile at *path*; ConfigurationError names the file, the key and the mistake."""
    try:
        document = yaml.safe_load(pathlib.Path(path).read_text(encoding="utf-8"))
        return Profile(_kinds(document), source=str(path))
    except OSError as error:
        raise errors.ConfigurationError(option=str(path), reason=error.strerror) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise errors.ConfigurationError(option=str(path), reason=reason) from error
    except _Wrong as error:
        option = f"{path}: {error.where}" if error.where else str(path)
        raise errors.ConfigurationError(option=option, reason=str(error)) from error


def _kinds(document: Any) -> tuple[HostKind, ...]:
    top = _section(document, "", {"hosts": _list_of(_kind)}, required=("hosts",))
    if not top["hosts"]:
        raise _Wrong("hosts", "at least one kind of host is needed")
    names = [kind.name for kind in top["hosts"]]
    for name in names:
        if names.count(name) > 1:
            raise _Wrong("hosts", f"two kinds are named {name!r}")
    return tuple(top["hosts"])


# -- checks of single values: (value, path) -> value, or _Wrong ------------------------------


def _integer(minimum: int) -> Check:
    def check(value: Any, where: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise _Wrong(where, f"must be a whole number, not {value!r}")
        if value < minimum:
            raise _Wrong(where, f"must be at least {minimum}, not {value}")
        return value

    return check


def _is(what: str, is_right: Callable[[Any], Any], convert: Callable[[Any], Any]) -> Check:
    def check(value: Any, where: str) -> Any:
        if not is_right(value):
            raise _Wrong(where, f"must be {what}, not {value!r}")
        return convert(value)

    return check


def _ratio(value: Any, where: str) -> float:
    if _number(value, where) < 0:
        raise _Wrong(where, f"must not be negative, not {value}")
    return float(value)


_number = _is(
    "a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool), float
)
_text = _is("a text", lambda value: isinstance(value, str) and value, str)
_scalar = _is(
    "a single value", lambda value: value is not None and not isinstance(value, dict | list), str
)
_hex_id = _is(
    "four hexadecimal digits in quotes",
    lambda value: re.fullmatch("[0-9a-fA-F]{4}", str(value)),
    lambda value: str(value).lower(),
)
_mapping = _is("a mapping", lambda value: isinstance(value, dict), dict)


def _list_of(check: Check) -> Check:
    def checked(value: Any, where: str) -> list[Any]:
        if not isinstance(value, list):
            raise _Wrong(where, f"must be a list, not {value!r}")
        return [check(item, f"{where}[{index}]") for index, item in enumerate(value)]

    return checked


def _map_of(check_key: Check, check_value: Check) -> Check:
    def checked(value: Any, where: str) -> dict[Any, Any]:
        return {
            check_key(key, where): check_value(item, f"{where}.{key}")
            for key, item in _mapping(value, where).items()
        }

    return checked


def _section(
    value: Any, where: str, checks: Mapping[str, Check], required: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Check a mapping with known keys; an unknown one is refused with its nearest neighbour."""
    found = _mapping(value, where)
    prefix = f"{where}." if where else ""
    for key in found:
        if key not in checks:
            near = difflib.get_close_matches(str(key), checks, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(checks)}"
            raise _Wrong(f"{prefix}{key}", f"unknown key; {hint}")
    for key in required:
        if key not in found:
            raise _Wrong(f"{prefix}{key}", "is required")
    return {key: checks[key](item, f"{prefix}{key}") for key, item in found.items()}


# -- the parts of a kind of host --------------------------------------------------------------


def _cpu_set(value: Any, where: str) -> frozenset[int]:
    """``0-3,8`` or a list of numbers."""
    if isinstance(value, list):
        return frozenset(_list_of(_integer(0))(value, where))
    cpus: set[int] = set()
    for part in _scalar(value, where).split(","):
        first, dash, last = part.strip().partition("-")
        last = last if dash else first
        if not (first.isdecimal() and last.isdecimal()) or int(last) < int(first):
            raise _Wrong(where, f"must be like '0-3,8', not {value!r}")
        cpus.update(range(int(first), int(last) + 1))
    return frozenset(cpus)


def _numa_cell(value: Any, where: str) -> NumaCell:
    cell = _section(value, where, _CELL_CHECKS, required=("cpus", "memory_mb"))
    for index, group in enumerate(cell.get("siblings", ())):
        if not group <= cell["cpus"]:
            raise _Wrong(f"{where}.siblings[{index}]", "has a cpu that is not one of the cell's")
    return NumaCell(**{**cell, "siblings": tuple(cell.get("siblings", ()))})


def _pci_pool(value: Any, where: str) -> PciPool:
    required = ("vendor_id", "product_id", "count")
    return PciPool(**_section(value, where, _POOL_CHECKS, required=required))


def _triple(value: Any, where: str) -> tuple[str, str, str]:
    parts = _list_of(_text)(value, where)
    if len(parts) != 3:
        raise _Wrong(where, "must be [architecture, hypervisor type, vm mode]")
    return parts[0], parts[1], parts[2]


def _zones(value: Any, where: str) -> tuple[str, ...]:
    """One zone, or a list that the hosts of the kind go through in turn."""
    return tuple(_list_of(_text)(value if isinstance(value, list) else [value], where))


def _kind(value: Any, where: str) -> HostKind:
    required = ("name", "vcpus", "memory_mb", "local_gb")
    fields = _section(value, where, _KIND_CHECKS, required=required)
    if "share" in fields and "count" in fields:
        raise _Wrong(where, "takes either share or count, not both")
    for short, ratio in fields.pop("ratios", {}).items():
        fields[f"{short}_allocation_ratio"] = ratio
    if "availability_zone" in fields:
        fields["availability_zones"] = fields.pop("availability_zone")
    for key in ("supported_instances", "numa_cells", "pci_pools"):
        if key in fields:
            fields[key] = tuple(fields[key])
    _check_numa_fits(fields, where)
    return HostKind(**fields)


def _check_numa_fits(fields: Mapping[str, Any], where: str) -> None:
    cells = fields.get("numa_cells", ())
    cpus = [cpu for cell in cells for cpu in cell.cpus]
    if len(cpus) != len(set(cpus)):
        raise _Wrong(f"{where}.numa_cells", "a cpu is in two cells")
    if cells and len(cpus) != fields["vcpus"]:
        raise _Wrong(
            f"{where}.numa_cells", f"have {len(cpus)} cpus, but vcpus is {fields['vcpus']}"
        )
    for index, pool in enumerate(fields.get("pci_pools", ())):
        if pool.numa_node is not None and pool.numa_node >= len(cells):
            raise _Wrong(f"{where}.pci_pools[{index}].numa_node", "is not one of the numa_cells")


_CELL_CHECKS: Mapping[str, Check] = {
    "cpus": _cpu_set,
    "memory_mb": _integer(1),
    "siblings": _list_of(_cpu_set),
    "socket": _integer(0),
    "pages": _map_of(_integer(1), _integer(0)),
}
_POOL_CHECKS: Mapping[str, Check] = {
    "vendor_id": _hex_id,
    "product_id": _hex_id,
    "count": _integer(1),
    "numa_node": _integer(0),
    "tags": _map_of(_text, _scalar),
}
_RATIO_CHECKS: Mapping[str, Check] = {"cpu": _ratio, "ram": _ratio, "disk": _ratio}
_KIND_CHECKS: Mapping[str, Check] = {
    "name": _text,
    "share": _integer(1),
    "count": _integer(0),
    "vcpus": _integer(1),
    "memory_mb": _integer(1),
    "local_gb": _integer(0),
    "ratios": lambda value, where: _section(value, where, _RATIO_CHECKS),
    "hypervisor_type": _text,
    "hypervisor_version": _integer(0),
    "cpu_info": _mapping,
    "supported_instances": _list_of(_triple),
    "numa_cells": _list_of(_numa_cell),
    "pci_pools": _list_of(_pci_pool),
    "metrics": _map_of(_text, _number),
    "availability_zone": _zones,
    "aggregates": _map_of(_text, _map_of(_text, _scalar)),
    "stats": _map_of(_text, _scalar),
}
