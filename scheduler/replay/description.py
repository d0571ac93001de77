"""A fleet described in words: ``2000 × 64 cores/256 GiB, 3 zones``."""

import datetime
import itertools
import re
import uuid
from collections.abc import Sequence
from typing import Any, Final

from scheduler import errors
from scheduler.db.services import COMPUTE_BINARY

MOST_HOSTS: Final = 200_000
#: Where the description names no disk; flavors of a trace often have none either.
DISK_GB: Final = 10_000
_UNITS: Final = {"MIB": 1, "GIB": 1024, "TIB": 1024 * 1024, "MB": 1, "GB": 1024, "TB": 1024 * 1024}
_N: Final = r"\s*([1-9]\d{0,8})\s*"
_KIND: Final = re.compile(
    rf"{_N}[×x*]{_N}cores?\s*/{_N}([MGT]i?B)(?:\s*/{_N}([GT]i?B))?\s*", re.IGNORECASE
)
_ZONES: Final = re.compile(rf"{_N}zones?\s*", re.IGNORECASE)
_FORM: Final = "2000 × 64 cores/256 GiB/2 TiB + 100 × 96 cores/768 GiB, 3 zones"
_SUPPORTED: Final = '[["x86_64", "kvm", "hvm"]]'


def rows_of(text: str, now: float) -> dict[str, Any]:
    """The rows of the hosts that *text* describes, by table; all have just reported.

    They are spread evenly over the zones.  InvalidRequest shows the form if it is no description.
    """
    kinds, *zones = text.split(",")
    found = [_KIND.fullmatch(each) for each in kinds.split("+")]
    spread = [_ZONES.fullmatch(each) for each in zones]
    counts = [int(each[1]) for each in found if each]
    if None in found or None in spread or len(spread) > 1 or sum(counts) > MOST_HOSTS:
        reason = f"not of the form '{_FORM}', disk and zones optional, {MOST_HOSTS} hosts at most"
        raise errors.InvalidRequest(field=f"fleet {text!r:.80}", reason=reason)
    hardware = itertools.chain.from_iterable(
        [_hardware(each)] * count for each, count in zip(found, counts, strict=True) if each
    )
    at = datetime.datetime.fromtimestamp(now, datetime.UTC).replace(tzinfo=None)
    width = len(str(sum(counts)))
    names = [f"host-{number:0{width}}" for number in range(1, sum(counts) + 1)]
    count = min(len(names), sum(int(each[1]) for each in spread if each))
    return {
        "compute_nodes": [
            {"id": number, "host": name, "hypervisor_hostname": name, "updated_at": at}
            | {"uuid": str(uuid.uuid5(uuid.NAMESPACE_DNS, name)), **its}
            for number, (name, its) in enumerate(zip(names, hardware, strict=True), 1)
        ],
        "services": [
            {"id": number, "host": name, "binary": COMPUTE_BINARY, "topic": "compute"}
            | {"disabled": False, "forced_down": False}
            | dict.fromkeys(("last_seen_up", "created_at", "updated_at"), at)
            for number, name in enumerate(names, 1)
        ],
        "aggregates": [_zone(number, names[number - 1 :: count]) for number in range(1, count + 1)],
    }


def _hardware(found: re.Match[str]) -> dict[str, Any]:
    """Columns of an empty host of the kind that was *found*."""
    memory_mb, disk_gb = int(found[3]) * _UNITS[found[4].upper()], DISK_GB
    if found[5] is not None:
        disk_gb = int(found[5]) * _UNITS[found[6].upper()] // 1024
    return {
        "hypervisor_type": "QEMU",
        "hypervisor_version": 8_000_000,
        "supported_instances": _SUPPORTED,
        "vcpus": int(found[2]),
        **dict.fromkeys(("vcpus_used", "memory_mb_used", "local_gb_used"), 0),
        **dict.fromkeys(("memory_mb", "free_ram_mb"), memory_mb),
        **dict.fromkeys(("local_gb", "free_disk_gb"), disk_gb),
    }


def _zone(number: int, hosts: Sequence[str]) -> dict[str, Any]:
    name = f"zone-{number}"
    return {"id": number, "name": name, "hosts": hosts, "metadata": {"availability_zone": name}}
