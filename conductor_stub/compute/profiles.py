"""Kinds of compute hosts, the YAML files that define them, and fleets made of them."""

import dataclasses
import json
import pathlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaml

from scheduler import errors
from scheduler.objects.numa import MAX_CPU, parse_cpu_spec

DEFAULT_FILE = pathlib.Path(__file__).parents[1] / "profiles" / "default.yaml"
ZONE_KEY = "availability_zone"

Check = Callable[[Any, str], Any]
"""``check(value, where)``: the value to use, or _Wrong; *where* is its path in the document."""


class _Wrong(Exception):
    """A value that cannot be used; *where* is its path in the document."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(reason)
        self.where = where


# -- checks of single values ------------------------------------------------------------------


def _is(what: str, is_right: Callable[[Any], Any], convert: Callable[[Any], Any]) -> Check:
    def check(value: Any, where: str) -> Any:
        if not is_right(value):
            raise _Wrong(where, f"must be {what}, not {value!r}")
        return convert(value)

    return check


#: The largest numbers that a column holds.
_MOST = {int: 2**31 - 1, float: 3.4e38}


def _number(value: Any, kind: type = float, minimum: float = -3.4e38) -> bool:
    kinds = (int, float) if kind is float else (int,)
    is_number = isinstance(value, kinds) and not isinstance(value, bool)
    return is_number and minimum <= value <= _MOST[kind]


def _whole(minimum: int) -> Check:
    what = f"a whole number from {minimum} to {_MOST[int]}"
    return _is(what, lambda value: _number(value, int, minimum), int)


_measure = _is("a number", _number, float)
_ratio = _is("a number of at least 0", lambda value: _number(value, minimum=0), float)
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
_list = _is("a list", lambda value: isinstance(value, list), list)


def _document(value: Any, where: str) -> dict[Any, Any]:
    """A mapping of what JSON has: YAML has dates, too."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise _Wrong(where, f"must be what JSON has: {error}") from None
    return _mapping(value, where)


def _list_of(check: Check) -> Check:
    def checked(value: Any, where: str) -> tuple[Any, ...]:
        items = enumerate(_list(value, where))
        return tuple(check(item, f"{where}[{index}]") for index, item in items)

    return checked


def _map_of(check_key: Check, check_value: Check) -> Check:
    def checked(value: Any, where: str) -> dict[Any, Any]:
        return {
            check_key(key, where): check_value(item, f"{where}.{key}")
            for key, item in _mapping(value, where).items()
        }

    return checked


def _cpu_set(value: Any, where: str) -> frozenset[int]:
    """``0-3,8`` or a list of numbers."""
    if isinstance(value, list):
        return frozenset(_list_of(_whole(0))(value, where))
    try:
        return frozenset(parse_cpu_spec(_scalar(value, where)))
    except ValueError as error:
        raise _Wrong(where, f"must be like '0-3,8', up to {MAX_CPU}: {error}") from None


def _triple(value: Any, where: str) -> tuple[str, ...]:
    parts: tuple[str, ...] = _list_of(_text)(value, where)
    if len(parts) != 3:
        raise _Wrong(where, "must be [architecture, hypervisor type, vm mode]")
    return parts


def _zones(value: Any, where: str) -> tuple[str, ...]:
    """One zone, or a list that the hosts of the kind go through in turn."""
    return tuple(_list_of(_text)(value if isinstance(value, list) else [value], where))


# -- the parts of a fleet ---------------------------------------------------------------------


def _key(check: Check, default: Any = dataclasses.MISSING) -> Any:
    """A key of the document, required without a *default*, whose value *check* reads."""
    return dataclasses.field(default=default, metadata={"check": check})


def _part(cls: type) -> Check:
    """Read a mapping as *cls*; an unknown key is refused with its nearest neighbour."""
    keys = {each.name: each for each in dataclasses.fields(cls)}

    def checked(value: Any, where: str) -> Any:
        found = _mapping(value, where)
        prefix = f"{where}." if where else ""
        for key in found:
            if key not in keys:
                near = errors.nearest(str(key), keys, 0.5)
                hint = f"did you mean {near!r}?" if near else f"known are {', '.join(keys)}"
                raise _Wrong(f"{prefix}{key}", f"unknown key; {hint}")
        for key, each in keys.items():
            if each.default is dataclasses.MISSING and key not in found:
                raise _Wrong(f"{prefix}{key}", "is required")
        values = {
            key: keys[key].metadata["check"](item, f"{prefix}{key}") for key, item in found.items()
        }
        try:
            return cls(**values)
        except _Wrong as error:
            raise _Wrong(f"{prefix}{error.where}".rstrip("."), str(error)) from None

    return checked


@dataclasses.dataclass(frozen=True)
class NumaCell:
    """One NUMA node of a host; *pages* is page size in KiB -> number of pages."""

    cpus: frozenset[int] = _key(_cpu_set)
    memory_mb: int = _key(_whole(1))
    siblings: tuple[frozenset[int], ...] = _key(_list_of(_cpu_set), ())
    socket: int | None = _key(_whole(0), None)
    pages: Mapping[int, int] | None = _key(_map_of(_whole(1), _whole(0)), None)

    def __post_init__(self) -> None:
        for index, group in enumerate(self.siblings):
            if not group <= self.cpus:
                raise _Wrong(f"siblings[{index}]", "has a cpu that is not one of the cell's")


@dataclasses.dataclass(frozen=True)
class PciPool:
    """Like devices of a host that are handed out one by one."""

    vendor_id: str = _key(_hex_id)
    product_id: str = _key(_hex_id)
    count: int = _key(_whole(1))
    numa_node: int | None = _key(_whole(0), None)
    tags: Mapping[str, str] | None = _key(_map_of(_text, _scalar), None)


@dataclasses.dataclass(frozen=True)
class Ratios:
    """Overcommit of the three countable resources."""

    cpu: float = _key(_ratio, 16.0)
    ram: float = _key(_ratio, 1.5)
    disk: float = _key(_ratio, 1.0)


@dataclasses.dataclass(frozen=True)
class HostKind:
    """One size of host: exactly *count* of them, or a *share* (1) of those that remain."""

    name: str = _key(_text)
    vcpus: int = _key(_whole(1))
    memory_mb: int = _key(_whole(1))
    local_gb: int = _key(_whole(0))
    share: int | None = _key(_whole(1), None)
    count: int | None = _key(_whole(0), None)
    ratios: Ratios = _key(_part(Ratios), Ratios())
    hypervisor_type: str = _key(_text, "QEMU")
    hypervisor_version: int = _key(_whole(0), 7_002_000)
    cpu_info: Mapping[str, Any] | None = _key(_document, None)
    supported_instances: tuple[tuple[str, ...], ...] = _key(
        _list_of(_triple), (("x86_64", "qemu", "hvm"), ("x86_64", "kvm", "hvm"))
    )
    numa_cells: tuple[NumaCell, ...] = _key(_list_of(_part(NumaCell)), ())
    pci_pools: tuple[PciPool, ...] = _key(_list_of(_part(PciPool)), ())
    metrics: Mapping[str, float] | None = _key(_map_of(_text, _measure), None)
    availability_zone: tuple[str, ...] = _key(_zones, ())
    aggregates: Mapping[str, Mapping[str, str]] | None = _key(
        _map_of(_text, _map_of(_text, _scalar)), None
    )
    stats: Mapping[str, str] | None = _key(_map_of(_text, _scalar), None)

    def __post_init__(self) -> None:
        if self.share is not None and self.count is not None:
            raise _Wrong("", "takes either share or count, not both")
        cpus = [cpu for cell in self.numa_cells for cpu in cell.cpus]
        if len(cpus) != len(set(cpus)):
            raise _Wrong("numa_cells", "a cpu is in two cells")
        if cpus and len(cpus) != self.vcpus:
            raise _Wrong("numa_cells", f"have {len(cpus)} cpus, but vcpus is {self.vcpus}")
        for index, pool in enumerate(self.pci_pools):
            if pool.numa_node is not None and pool.numa_node >= len(self.numa_cells):
                raise _Wrong(f"pci_pools[{index}].numa_node", "is not one of the numa_cells")


@dataclasses.dataclass(frozen=True)
class HostPlan:
    """One host to be: its name (service host and node alike), kind and zone."""

    name: str
    kind: HostKind
    availability_zone: str | None = None

    @property
    def aggregates(self) -> dict[str, dict[str, str]]:
        """Name -> metadata of every aggregate the host belongs in; a zone is an aggregate too."""
        found = {name: dict(given) for name, given in (self.kind.aggregates or {}).items()}
        if self.availability_zone is not None:
            found.setdefault(self.availability_zone, {})[ZONE_KEY] = self.availability_zone
        return found


@dataclasses.dataclass(frozen=True)
class Profile:
    """The kinds of hosts of one fleet."""

    hosts: tuple[HostKind, ...] = _key(_list_of(_part(HostKind)))

    def __post_init__(self) -> None:
        if not self.natural_size:
            raise _Wrong("hosts", "at least one host is needed")
        names = [kind.name for kind in self.hosts]
        for name in names:
            if names.count(name) > 1:
                raise _Wrong("hosts", f"two kinds are named {name!r}")

    @property
    def natural_size(self) -> int:
        """The number of hosts without any number given."""
        return sum(kind.count if kind.count is not None else kind.share or 1 for kind in self.hosts)

    def plan(self, hosts: int, prefix: str = "compute") -> list[HostPlan]:
        """Lay out hosts ``<prefix>-01`` and so on, interleaved; raises ConfigurationError."""
        amounts = self._amounts(hosts).items()
        # the kind that lags most behind its part of the fleet comes next
        turns = sorted((n / total, index, n) for index, total in amounts for n in range(total))
        plans: list[HostPlan] = []
        for number, (_, index, made) in enumerate(turns, 1):
            kind = self.hosts[index]
            zones = kind.availability_zone
            zone = zones[made % len(zones)] if zones else None
            plans.append(HostPlan(f"{prefix}-{number:02d}", kind, zone))
        return plans

    def _amounts(self, hosts: int) -> dict[int, int]:
        """Kind's index -> how many of it: counts first, then in proportion to the shares."""
        amounts = {i: kind.count or 0 for i, kind in enumerate(self.hosts)}
        rest = hosts - sum(amounts.values())
        shares = {i: kind.share or 1 for i, kind in enumerate(self.hosts) if kind.count is None}
        if rest < 0 or (rest and not shares):
            raise errors.ConfigurationError(
                option="--hosts",
                reason=f"the counts add up to {hosts - rest} hosts, but {hosts} are wanted",
            )
        for _ in range(rest):
            behind = max(shares, key=lambda i: shares[i] / (2 * amounts[i] + 1))
            amounts[behind] += 1
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


def load(path: str | pathlib.Path) -> Profile:
    """Read the profile at *path*; ConfigurationError names the file, the key and the mistake."""
    option = str(path)
    try:
        document = yaml.safe_load(pathlib.Path(path).read_text(encoding="utf-8"))
        profile: Profile = _part(Profile)(document, "")
    except OSError as error:
        raise errors.ConfigurationError(option=option, reason=error.strerror) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise errors.ConfigurationError(option=option, reason=reason) from error
    except _Wrong as error:
        option = f"{path}: {error.where}" if error.where else option
        raise errors.ConfigurationError(option=option, reason=str(error)) from error
    return profile
