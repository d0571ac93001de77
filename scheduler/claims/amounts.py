"""Between what an instance takes of its host and the columns of its claim."""

import dataclasses
import json
from typing import Any

from oslo_log import log as logging

from scheduler import errors, numa, objects, pci
from scheduler.hosts.host_state import Consumption, Fitting
from scheduler.numa import Wish
from scheduler.objects.registry import read_json

LOG = logging.getLogger(__name__)

MB_PER_GB = 1024


def to_columns(amount: Consumption) -> dict[str, Any]:
    """The columns that say what is claimed: vCPUs, MiB, GiB, cells and devices."""
    cells = devices = None
    if (wish := amount.wish) is not None:
        parts = {"guest": wish.guest, "limits": wish.limits}.items()
        made = {n: p.to_object().obj_to_primitive() for n, p in parts if p is not None}
        cells = json.dumps(made) if made else None
        if wish.requests:
            devices = json.dumps([_fields_of(each) for each in wish.requests])
    return {
        "vcpus": amount.vcpus,
        "memory_mb": amount.ram_mb,
        "disk_gb": amount.disk_mb // MB_PER_GB,
        "numa_topology": cells,
        "pci_requests": devices,
    }


def _fields_of(request: pci.Request) -> dict[str, Any]:
    """All but the providers, which no claim in a database has."""
    fields = dataclasses.asdict(request) | {"specs": [dict(spec) for spec in request.specs]}
    del fields["providers"]
    return fields


def of_row(row: Any, fitting: Fitting) -> Consumption:
    """Amounts that the claim *row* takes: its numbers also where its documents cannot be read."""
    wish = None
    try:
        if row.numa_topology or row.pci_requests:
            wish = _wish_of(row, fitting)
    except (ValueError, LookupError, TypeError, AttributeError, errors.NovaException) as error:
        LOG.warning(
            "Cells and devices that are claimed for %s cannot be read, and do not count: %r",
            row.consumer_uuid,
            error,
        )
    return Consumption(row.memory_mb, row.disk_gb * MB_PER_GB, row.vcpus, wish)


def _wish_of(row: Any, fitting: Fitting) -> Wish:
    cells = read_json(row.numa_topology or "{}")
    devices = read_json(row.pci_requests or "[]")
    guest, limits = cells.get("guest"), cells.get("limits")
    for each in devices:
        each["specs"] = tuple(tuple(sorted(spec.items())) for spec in each["specs"])
        each.pop("request_id", None)  # of version 0.1
    return Wish(
        numa.GuestTopology.from_object(objects.from_primitive(guest)) if guest else None,
        tuple(pci.Request(**each) for each in devices),
        numa.Limits.from_object(objects.from_primitive(limits)) if limits else None,
        fitting,
    )
