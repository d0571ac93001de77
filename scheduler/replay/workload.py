"""Workloads: servers that were asked for, when, and how long they lived.

A row of a CSV file is ``arrival,lifetime,flavor,count,group,zone``: seconds, seconds (empty: to
the end), ``vCPUs/GiB`` or ``vCPUs/GiB/GB of disk``, and what may be empty.
"""

import csv
import dataclasses
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from scheduler import errors, objects
from scheduler.objects.fields import LARGEST_SIZE

COLUMNS: Final = ("arrival", "lifetime", "flavor", "count", "group", "zone")
MOST_SERVERS: Final = 10_000
_SIZE: Final = re.compile(r"(\d{1,99})/(\d{1,99}(?:\.\d+)?)(?:/(\d{1,99}))?")
_POLICIES: Final = ("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity")


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request: *lifetimes* of its servers in seconds, infinite for those that stay."""

    name: str
    at: float
    flavor: objects.Flavor
    lifetimes: Sequence[float]
    #: ``policy:name`` of its server group.
    group: str = ""
    zone: str = ""
    #: The request as it was recorded, where it was, and the uuids of its servers.
    spec: objects.RequestSpec | None = None
    uuids: Sequence[str] = ()
    #: File and line of it in a recording.
    place: str = ""

    @property
    def count(self) -> int:
        return len(self.lifetimes)

    @property
    def flavor_name(self) -> str:
        """The flavor's name; where a recorded one has none, its size as in a CSV file."""
        flavor = self.flavor
        gib = (flavor.memory_mb or 0) / 1024
        return flavor.name or f"{flavor.vcpus or 0}/{gib:g}/{flavor.root_gb or 0}"

    def request(self) -> objects.RequestSpec:
        if self.spec is not None:
            return self.spec
        spec = objects.RequestSpec(flavor=self.flavor, num_instances=self.count)
        if self.zone:
            spec.availability_zone = self.zone
        return spec


class HostEvent(NamedTuple):
    """A host that takes new servers no more (``is_off``), or takes them again."""

    at: float
    host: str
    is_off: bool


@dataclass(slots=True)
class Workload:
    """*arrivals* and *events* in order of time, their source, and what could not be used."""

    source: str
    arrivals: Sequence[Arrival]
    notes: list[str] = field(default_factory=list)
    events: Sequence[HostEvent] = ()

    @property
    def begin(self) -> float:
        return self.arrivals[0].at

    @property
    def lasts(self) -> float:
        return self.arrivals[-1].at - self.begin

    def between(self, begin: float, end: float) -> Self:
        """The arrivals from *begin* on and before *end*, seconds after the first one."""
        first = _required(self.arrivals, self.source)[0].at
        some = [each for each in self.arrivals if begin <= each.at - first < end]
        return dataclasses.replace(self, arrivals=some)

    def inflated(self, factor: float, phase: float) -> Self:
        """The same with *factor* times the requests, spread evenly; they come at the same times.

        *phase*, 0 to 1, says which ones are more.
        """
        found: list[Arrival] = []
        for number, each in enumerate(self.arrivals):
            times = math.floor((number + 1) * factor + phase)
            times -= math.floor(number * factor + phase)
            # A server that a recording names would be moved, not be another one.
            others = dataclasses.replace(each, uuids=()) if each.uuids else each
            found += [each, *itertools.repeat(others, times - 1)][:times]
        return dataclasses.replace(self, arrivals=found)


def read_csv(path: Path, faults: errors.Faults) -> Workload:
    """The workload of a CSV file.  UnusableInput names the line."""
    flavors, arrivals, last = dict[str, objects.Flavor](), list[Arrival](), -math.inf
    for line, row in _rows(path):
        try:
            arrival = _arrival(row, line, flavors)
            if arrival.at < last:
                raise ValueError(f"the clock went back: arrival {arrival.at:g} after {last:g}")
        except ValueError as error:
            faults.add(path, line, error)
            continue
        last = arrival.at
        arrivals.append(arrival)
    return Workload(path.name, _required(arrivals, path.name), faults.notes)


def _required(arrivals: Sequence[Arrival], name: str) -> Sequence[Arrival]:
    if not arrivals:
        raise errors.InvalidRequest(field=name, reason="it has no arrivals that could be used")
    return arrivals


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    reader = csv.reader(())
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            reader = csv.reader(file)
            header = [each.strip().lower() for each in next(reader, [])]
            wrong = [f"no column {each}" for each in COLUMNS[:3] if each not in header]
            wrong += [f"unknown column {each!r:.40}" for each in header if each not in COLUMNS]
            if wrong:
                reason = f"{', '.join(wrong)}; columns are {', '.join(COLUMNS)}"
                raise errors.UnusableInput(path=path, line=1, reason=reason)
            for row in reader:
                if row:
                    fields = itertools.zip_longest(header, map(str.strip, row), fillvalue="")
                    yield reader.line_num, dict(fields)
    except (OSError, csv.Error) as error:
        raise errors.unusable(path, reader.line_num, error) from error


def _arrival(row: Mapping[str, str], line: int, flavors: dict[str, objects.Flavor]) -> Arrival:
    if more := row.get(""):
        raise ValueError(f"{more!r:.40} is in no column")
    if any("\ufffd" in each for each in row.values()):
        raise ValueError("it is not UTF-8")
    at, lifetime = _seconds("arrival", row), _seconds("lifetime", row, math.inf)
    text = row.get("count") or "1"
    if not text.isdecimal() or len(text) > 9 or not 1 <= int(text) <= MOST_SERVERS:
        raise ValueError(f"count {text!r:.40} is not a number from 1 to {MOST_SERVERS}")
    group = row.get("group", "")
    policy = group.partition(":")[0]
    if group and (":" not in group or policy not in _POLICIES):
        raise ValueError(f"group {group!r:.80} is not POLICY:NAME of {', '.join(_POLICIES)}")
    name = row.get("flavor", "")
    if name not in flavors:
        flavors[name] = flavor_of(name, len(flavors) + 1)
    lifetimes = (lifetime,) * int(text)
    return Arrival(f"line {line}", at, flavors[name], lifetimes, group, row.get("zone", ""))


def _seconds(name: str, row: Mapping[str, str], default: float | None = None) -> float:
    text = row.get(name, "")
    if not text and default is not None:
        return default
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found < math.inf:
        raise ValueError(f"{name} {text!r:.40} is not a number of seconds")
    return found


def flavor_of(text: str, number: int) -> objects.Flavor:
    """The flavor of a text ``4/16`` or ``4/16/100``; ValueError if it is none."""
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ValueError(f"flavor {text!r:.80} is not VCPUS/GIB[/DISK_GB]")
    vcpus, gib, disk_gb = int(found[1]), float(found[2]), int(found[3] or 0)
    if max(vcpus, gib * 1024, disk_gb) > LARGEST_SIZE:
        raise ValueError(f"flavor {text!r:.80} is larger than a flavor may be")
    return a_flavor(text, number, vcpus, gib * 1024, disk_gb)


def a_flavor(
    name: str, number: int, vcpus: int, memory_mb: float, disk_gb: int = 0
) -> objects.Flavor:
    sizes: dict[str, Any] = {"vcpus": vcpus, "memory_mb": int(memory_mb), "root_gb": disk_gb}
    return objects.Flavor(
        id=number, flavorid=name, name=name, ephemeral_gb=0, swap=0, extra_specs={}, **sizes
    )
