"""Between what an instance takes of its host and the columns of its claim."""

from __future__ import annotations

import json
from typing import Any

from oslo_log import log as logging

from scheduler import errors, numa, objects, pci
from scheduler.hosts.consumption import Consumption, Fitting, Wish
from scheduler.objects.registry import read_json

LOG = logging.getLogger(__name__)

MB_PER_GB = 1024


def to_columns(amount: Consumption) -> dict[str, Any]:
    """The columns that say what is claimed: vCPUs, MiB, GiB, cells and devices."""
    wish = amount.wish
    return {
        "vcpus": amount.vcpus,
        "memory_mb": amount.ram_mb,
        "disk_gb": amount.disk_mb // MB_PER_GB,
        "numa_topology": None if wish is None else _cells_text(wish),
        "pci_requests": None if wish is None else _devices_text(wish),
    }


def of_row(row: Any, fitting: Fitting) -> Consumption:
    """Amounts that the claim *row* takes; *fitting* says how cells and devices are given out."""
    wish = None
    if row.numa_topology or row.pci_requests:
        wish = _wish_of(row, fitting)
    return Consumption(row.memory_mb, row.disk_gb * MB_PER_GB, row.vcpus, wish)


def _wish_of(row: Any, fitting: Fitting) -> Wish | None:
    """None where a document cannot be read: the numbers of the claim count all the same."""
    try:
        guest, limits = _cells_of(row.numa_topology)
        return Wish(guest, _devices_of(row.pci_requests), limits, fitting)
    except (ValueError, LookupError, TypeError, AttributeError, errors.NovaException) as error:
        LOG.warning(
            "Cells and devices that are claimed for %s cannot be read, and do not count: %r",
            row.consumer_uuid,
            error,
        )
        return None


def _cells_text(wish: Wish) -> str | None:
    if wish.guest is None and wish.limits is None:
        return None
    return json.dumps(
        {
            "guest": wish.guest and objects.to_primitive(wish.guest.to_object()),
            "limits": wish.limits and objects.to_primitive(wish.limits.to_object()),
        }
    )


def _cells_of(text: str | None) -> tuple[numa.GuestTopology | None, numa.Limits | None]:
    content = read_json(text) if text else {}
    guest, limits = content.get("guest"), content.get("limits")
    return (
        numa.GuestTopology.from_object(objects.from_primitive(guest)) if guest else None,
        numa.Limits.from_object(objects.from_primitive(limits)) if limits else None,
    )


_PARTS = ("count", "policy", "alias_name", "request_id")


def _devices_text(wish: Wish) -> str | None:
    several = [
        {
            "specs": [dict(spec) for spec in each.specs],
            **{name: getattr(each, name) for name in _PARTS},
        }
        for each in wish.requests
    ]
    return json.dumps(several) if several else None


def _devices_of(text: str | None) -> tuple[pci.Request, ...]:
    return tuple(
        pci.Request(
            specs=tuple(tuple(sorted(spec.items())) for spec in each["specs"]),
            **{name: each[name] for name in _PARTS},
        )
        for each in (read_json(text) if text else ())
    )
