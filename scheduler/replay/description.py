"""A fleet described in words: ``2000 × 64 cores/256 GiB, 3 zones``."""

import datetime
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from scheduler import errors
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
    count: int
    vcpus: int
    memory_mb: int
    disk_gb: int = DISK_GB


def parsed(text: str) -> tuple[list[HostKind], int]:
    """The kinds of empty hosts that *text* describes, and the zones they are spread over evenly.

    0 is without zones.  InvalidRequest shows the form if it is no description.
    """
    parts = text.split(",")
    found = [_KIND.fullmatch(each) for each in parts[0].split("+")]
    zones = [_ZONES.fullmatch(each) for each in parts[1:]]
    if None in found or None in zones or len(zones) > 1:
        reason = f"not of the form '{_FORM}', disk and zones are optional"
        raise errors.InvalidRequest(field=f"fleet {text!r:.80}", reason=reason)
    kinds = [_kind(each) for each in found if each]
    hosts = sum(each.count for each in kinds)
    if not 0 < hosts <= MOST_HOSTS or not all(each.count for each in kinds):
        reason = f"{hosts} hosts; 1 to {MOST_HOSTS}, and some of each kind"
        raise errors.InvalidRequest(field=f"fleet {text!r:.80}", reason=reason)
    return kinds, sum(int(each[1]) for each in zones if each)


def _kind(found: re.Match[str]) -> HostKind:
    disk_gb = DISK_GB
    if found[5] is not None:
        disk_gb = int(found[5]) * _UNITS[found[6].upper()] // 1024
    return HostKind(int(found[1]), int(found[2]), int(found[3]) * _UNITS[found[4].upper()], disk_gb)


def rows_of(text: str, now: float) -> dict[str, Any]:
    """The rows of the hosts that *text* describes, by table; all have just reported."""
    several, zones = parsed(text)
    kinds = [each for each in several for _host in range(each.count)]
    at = datetime.datetime.fromtimestamp(now, datetime.UTC).replace(tzinfo=None)
    width = len(str(len(kinds)))
    names = [f"host-{number:0{width}}" for number in range(1, len(kinds) + 1)]
    times = {"created_at": at, "updated_at": at}
    service = {"binary": COMPUTE_BINARY, "topic": "compute", "disabled": False} | times
    return {
        "compute_nodes": [
            {"id": number, "updated_at": at, **_node(name, kind)}
            for number, (name, kind) in enumerate(zip(names, kinds, strict=True), 1)
        ],
        "services": [
            {"id": number, "host": name, "forced_down": False, "last_seen_up": at, **service}
            for number, name in enumerate(names, 1)
        ],
        "aggregates": [_zone(number, names[number - 1 :: zones]) for number in range(1, zones + 1)],
    }


def _node(name: str, kind: HostKind) -> dict[str, Any]:
    return {
        "uuid": str(uuid.uuid5(uuid.NAMESPACE_DNS, name)),
        "host": name,
        "hypervisor_hostname": name,
        "hypervisor_type": "QEMU",
        "hypervisor_version": 8_000_000,
        "supported_instances": _SUPPORTED,
        "vcpus": kind.vcpus,
        "vcpus_used": 0,
        "memory_mb": kind.memory_mb,
        "memory_mb_used": 0,
        "free_ram_mb": kind.memory_mb,
        "local_gb": kind.disk_gb,
        "local_gb_used": 0,
        "free_disk_gb": kind.disk_gb,
    }


def _zone(number: int, hosts: Sequence[str]) -> dict[str, Any]:
    name = f"zone-{number}"
    return {"id": number, "name": name, "hosts": hosts, "metadata": {"availability_zone": name}}
