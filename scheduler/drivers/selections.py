"""From a placement to the Selection objects of the reply (scheduling page, section 2.5)."""

from collections.abc import Iterable, Mapping
from typing import Any

from scheduler import errors, objects
from scheduler.engine.decision import NOT_ENOUGH_HOSTS, Placement
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
    value, row = host.table.value, host.row
    selection = objects.Selection(
        compute_node_uuid=value(row, "uuid"),
        service_host=value(row, "host"),
        nodename=value(row, "nodename"),
        cell_uuid=value(row, "cell_uuid"),
        limits=objects.SchedulerLimits.from_dict(limits),
        allocation_request=NO_ALLOCATION_REQUEST,
        allocation_request_version=None,
        availability_zone=zone_of(host, zone_if_none),
    )
    selection.limits_exact = dict(limits)  # the dict form of the reply keeps the fractions
    return selection


def todays_answer(driver: Any, answer: Any, count: int) -> list[list[objects.Selection]]:
    """Per instance a list of Selections, made of what *driver* answered, in any release's form.

    An instance may have a dict, a HostState or a Selection, or a list of them.  Raises NoValidHost
    for fewer hosts than *count*, ComputeHostNotFound for a host without a compute node, and
    ExtensionFailed, which names the driver, for what is none of these.
    """
    if not isinstance(answer, Iterable) or isinstance(answer, str | Mapping):
        raise _unusable(driver, answer)
    rows = [each if isinstance(each, list) else [each] for each in answer]
    if len(rows) < count:
        raise errors.NoValidHost(reason=NOT_ENOUGH_HOSTS)
    if not all(rows):
        raise _unusable(driver, answer)
    if all(isinstance(each, objects.Selection) for row in rows for each in row):
        return rows
    driver.host_manager.refresh()
    return [[_selection(driver, each) for each in row] for row in rows]


def _selection(driver: Any, chosen: Any) -> objects.Selection:
    if isinstance(chosen, objects.Selection):
        return chosen
    if not isinstance(chosen, Mapping):
        names = ("host", "nodename", "limits")
        chosen = {name: getattr(chosen, name) for name in names if hasattr(chosen, name)}
    if not isinstance(chosen.get("host"), str):
        raise _unusable(driver, chosen)
    state = driver.host_manager.state_of(chosen["host"], chosen.get("nodename"))
    limits = chosen.get("limits")
    selection = selection_of(state, limits or {}, driver.conf.default_availability_zone)
    if limits is None:
        selection.limits = None
    return selection


def _unusable(driver: Any, answer: Any) -> errors.ExtensionFailed:
    name = type(getattr(driver, "driver", driver)).__name__
    reason = f"it answered {answer!r:.200}, which is no list of hosts"
    return errors.ExtensionFailed(name=name, place="", reason=reason)


def as_dict(chosen: list[objects.Selection], numa_limits_version: str | None) -> dict[str, Any]:
    """The dict of one instance for callers below 4.5.

    The limits keep the fractions that the integers of a SchedulerLimits object lose.
    """
    selection = chosen[0]
    reply: dict[str, Any] = selection.to_dict(numa_limits_version)
    if selection.limits is None:
        return {**reply, "limits": None}
    return {**reply, "limits": {**reply["limits"], **exact_numbers(selection)}}
