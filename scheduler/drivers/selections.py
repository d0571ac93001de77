"""From a placement to the Selection objects of the reply (scheduling page, section 2.5)."""

from typing import Any

from scheduler import objects
from scheduler.engine.decision import Placement
from scheduler.hosts.host_state import HostState
from scheduler.idempotency import exact_numbers

#: Value of ``allocation_request`` without Placement: the JSON text of null.
NO_ALLOCATION_REQUEST = "null"
ZONE_KEY = "availability_zone"


def selections_of(placement: Placement, zone_if_none: str) -> list[list[objects.Selection]]:
    """Per instance the Selection of its host and those of its alternates."""
    made: dict[int, objects.Selection] = {}

    def selection(host: HostState, limits: dict[str, Any]) -> objects.Selection:
        known = made.get(host.row)
        if known is not None and known.limits_exact == limits:
            return known.copy()
        made[host.row] = known = selection_of(host, limits, zone_if_none)
        return known

    return [
        [selection(host, limits), *(selection(other, other.limits) for other in alternates)]
        for host, limits, alternates in zip(
            placement.hosts, placement.limits, placement.alternates, strict=True
        )
    ]


def zone_of(host: HostState, zone_if_none: str) -> str:
    """The host's zone: the first that its aggregates name, else *zone_if_none*."""
    for aggregate in host.aggregates:
        names = (aggregate.metadata or {}).get(ZONE_KEY, "")
        for name in names.split(","):
            if name.strip():
                return str(name.strip())
    return zone_if_none


def selection_of(host: HostState, limits: dict[str, Any], zone_if_none: str) -> objects.Selection:
    """The Selection of *host* with *limits*; *zone_if_none* if no aggregate names a zone."""
    selection = objects.Selection(
        compute_node_uuid=host.uuid,
        service_host=host.host,
        nodename=host.nodename,
        cell_uuid=host.cell_uuid,
        limits=objects.SchedulerLimits.from_dict(limits),
        allocation_request=NO_ALLOCATION_REQUEST,
        allocation_request_version=None,
        availability_zone=zone_of(host, zone_if_none),
    )
    selection.limits_exact = dict(limits)  # the dict form of the reply keeps the fractions
    return selection


def as_dict(chosen: Any, numa_limits_version: str | None) -> dict[str, Any]:
    """The dict of one instance for callers below 4.5; a driver of Newton's kind made it itself.

    The limits keep the fractions that the integers of a SchedulerLimits object lose.
    """
    if isinstance(chosen, dict):
        return chosen
    selection = chosen[0]
    reply: dict[str, Any] = selection.to_dict(numa_limits_version)
    if selection.limits is None:
        return {**reply, "limits": None}
    return {**reply, "limits": {**reply["limits"], **exact_numbers(selection)}}
