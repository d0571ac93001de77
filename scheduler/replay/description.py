"""A fleet described in words: ``2000 × 64 cores/256 GiB, 3 zones``."""

from __future__ import annotations

import datetime
import itertools
import re
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

from scheduler import errors, objects
from scheduler.db import tables
from scheduler.db.cells import CellHealth
from scheduler.db.fleet import FleetChanges
from scheduler.db.services import COMPUTE_BINARY

MOST_HOSTS: Final = 200_000
#: Where the description names no disk; flavors of a trace often have none either.
DISK_GB: Final = 10_000
_UNITS: Final = {"MIB": 1, "GIB": 1024, "TIB": 1024 * 1024, "MB": 1, "GB": 1024, "TB": 1024 * 1024}
_KIND: Final = re.compile(
    r"\s*(\d+)\s*[×x*]\s*(\d+)\s*cores?\s*/\s*(\d+)\s*([MGT]i?B)(?:\s*/\s*(\d+)\s*([GT]i?B))?\s*",
    re.IGNORECASE,
)
_ZONES: Final = re.compile(r"\s*(\d+)\s*zones?\s*", re.IGNORECASE)
_FORM: Final = "2000 × 64 cores/256 GiB/2 TiB + 100 × 96 cores/768 GiB, 3 zones"
_SUPPORTED: Final = '[["x86_64", "kvm", "hvm"]]'


@dataclass(frozen=True, slots=True)
class HostKind:
    """A number of hosts that are alike."""

    count: int
    vcpus: int
    memory_mb: int
    disk_gb: int = DISK_GB


@dataclass(frozen=True, slots=True)
class FleetDescription:
    """Empty hosts of some kinds, spread evenly over ``zones`` zones; 0: without zones."""

    kinds: tuple[HostKind, ...]
    zones: int = 0

    @classmethod
    def from_text(cls, text: str) -> FleetDescription:
        """The fleet that *text* describes; InvalidRequest shows the form if it is none."""
        parts = text.split(",")
        kinds = [_KIND.fullmatch(each) for each in parts[0].split("+")]
        zones = [_ZONES.fullmatch(each) for each in parts[1:]]
        if None in kinds or None in zones or len(zones) > 1:
            reason = f"not of the form '{_FORM}', disk and zones are optional"
            raise errors.InvalidRequest(field=f"fleet {text!r:.80}", reason=reason)
        found = cls(
            tuple(_kind(each) for each in kinds if each), *(int(each[1]) for each in zones if each)
        )
        if not 0 < found.hosts <= MOST_HOSTS or not all(each.count for each in found.kinds):
            reason = f"{found.hosts} hosts; 1 to {MOST_HOSTS}, and some of each kind"
            raise errors.InvalidRequest(field=f"fleet {text!r:.80}", reason=reason)
        return found

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return sum(each.count for each in self.kinds)


def _kind(found: re.Match[str]) -> HostKind:
    disk_gb = DISK_GB
    if found[5] is not None:
        disk_gb = int(found[5]) * _UNITS[found[6].upper()] // 1024
    return HostKind(int(found[1]), int(found[2]), int(found[3]) * _UNITS[found[4].upper()], disk_gb)


class DescribedFleet:
    """A reader for the host manager that brings the hosts of a description, and nothing else."""

    def __init__(self, description: FleetDescription | None = None) -> None:
        self._description = description or FleetDescription(())

    def read(self, now: datetime.datetime, *, full: bool = False) -> Sequence[FleetChanges]:
        """All hosts, which have just reported."""
        del full
        kinds = itertools.chain.from_iterable(
            itertools.repeat(each, each.count) for each in self._description.kinds
        )
        width = len(str(self._description.hosts))
        named = [(f"host-{n:0{width}}", kind) for n, kind in enumerate(kinds, 1)]
        nodes = [_node(number, name, kind, now) for number, (name, kind) in enumerate(named, 1)]
        services = [_service(number, name, now) for number, (name, _kind) in enumerate(named, 1)]
        names, zones = [name for name, _kind in named], self._description.zones
        aggregates = [_zone(number, names[number - 1 :: zones]) for number in range(1, zones + 1)]
        return [
            FleetChanges(
                full=True,
                read_at=now,
                nodes=nodes,
                instances=(),
                services=services,
                aggregates=aggregates,
                cell=None,
                system_metadata={},
            )
        ]

    def read_beside(self, now: datetime.datetime) -> Sequence[FleetChanges]:
        """Nothing."""
        del now
        return ()

    def cell_health(self) -> Sequence[CellHealth]:
        """Nothing: there are no cells."""
        return ()

    def read_more(self, conf: Any) -> bool:
        """Everything is read anyway."""
        del conf
        return False

    def services(self, topic: str) -> Sequence[Any]:
        """Nothing: nobody asks for hosts by topic."""
        del topic
        return ()


def _row(table: Any, **values: Any) -> Any:
    columns = {**dict.fromkeys(table.c.keys()), "deleted": 0, **values}
    return SimpleNamespace(**columns, _mapping=columns)


def _node(number: int, name: str, kind: HostKind, now: datetime.datetime) -> Any:
    return _row(
        tables.compute_nodes,
        id=number,
        uuid=str(uuid.uuid5(uuid.NAMESPACE_DNS, name)),
        host=name,
        hypervisor_hostname=name,
        hypervisor_type="QEMU",
        hypervisor_version=8_000_000,
        supported_instances=_SUPPORTED,
        vcpus=kind.vcpus,
        vcpus_used=0,
        memory_mb=kind.memory_mb,
        memory_mb_used=0,
        free_ram_mb=kind.memory_mb,
        local_gb=kind.disk_gb,
        local_gb_used=0,
        free_disk_gb=kind.disk_gb,
        created_at=now,
        updated_at=now,
    )


def _service(number: int, name: str, now: datetime.datetime) -> Any:
    return _row(
        tables.services,
        id=number,
        host=name,
        binary=COMPUTE_BINARY,
        topic="compute",
        disabled=False,
        forced_down=False,
        created_at=now,
        updated_at=now,
        last_seen_up=now,
    )


def _zone(number: int, hosts: Iterable[str]) -> objects.Aggregate:
    name = f"zone-{number}"
    return objects.Aggregate(
        id=number, name=name, hosts=list(hosts), metadata={"availability_zone": name}
    )
