"""Calls of the scheduler with Nova's own client."""

from collections.abc import Mapping, Sequence
from typing import Any

import nova.conf
from nova import baserpc, objects
from nova.scheduler import utils
from nova.scheduler.client import query

from tests.nova.inside import contexts
from tests.nova.inside.demands import a_request


def select(
    demand: Mapping[str, Any], returns_objects: bool = True, alternates: bool = False
) -> list[Any]:
    """Ask the scheduler for hosts; returns what :func:`told` makes of each instance's."""
    request, client = a_request(demand), query.SchedulerQueryClient()
    answered = client.select_destinations(
        contexts.admin(), request, demand["uuids"], returns_objects, alternates
    )
    if not returns_objects:
        return [dict(each) for each in answered]
    return [[told(each, request) for each in one] for one in answered]


def told(selection: Any, request: Any) -> dict[str, Any]:
    """A selection as plain values, after Nova's object layer and conductor have used it."""
    if not isinstance(selection, objects.Selection):
        raise TypeError(f"{type(selection)} is no Selection")
    again = objects.Selection.obj_from_primitive(selection.obj_to_primitive())
    properties: dict[str, Any] = {}
    utils.populate_retry(properties, request.instance_uuid)
    utils.populate_filter_properties(properties, again)
    utils.fill_provider_mapping(request, again)
    numa = again.limits.numa_topology if again.limits and "numa_topology" in again.limits else None
    return {
        "host": again.service_host,
        "node": again.nodename,
        "cell": again.cell_uuid,
        "node_uuid": again.compute_node_uuid,
        "zone": again.availability_zone,
        "allocation_request": again.allocation_request,
        "limits": sorted(again.to_dict()["limits"]),
        "numa_limits": type(numa).__name__,
        "retry": properties.get("retry"),
    }


def configure(group: str | None, option: str, value: Any) -> None:
    """Change an option for the calls that follow, such as ``[upgrade_levels] scheduler``."""
    query.SchedulerQueryClient()  # which makes the library know its options
    nova.conf.CONF.set_override(option, value, group=group)


def ping(text: str) -> Any:
    return baserpc.BaseAPI("scheduler").ping(contexts.admin(), text, timeout=30)


def update_aggregates(numbers: Sequence[int]) -> None:
    """Tell the schedulers of aggregates, as the API does."""
    context = contexts.admin()
    aggregates = [objects.Aggregate.get_by_id(context, each) for each in numbers]
    query.SchedulerQueryClient().update_aggregates(context, aggregates)


def delete_aggregate(number: int) -> None:
    """Delete an aggregate and tell the schedulers, as the API does."""
    context = contexts.admin()
    aggregate = objects.Aggregate.get_by_id(context, number)
    for host in list(aggregate.hosts):
        aggregate.delete_host(host)
    aggregate.destroy()
    query.SchedulerQueryClient().delete_aggregate(context, aggregate)


def update_instance_info(host: str, uuids: Sequence[str]) -> None:
    """Tell the schedulers of a host's instances, as its compute service does."""
    with contexts.inside(contexts.cell_of(host)) as targeted:
        instances = [objects.Instance.get_by_uuid(targeted, each) for each in uuids]
        query.SchedulerQueryClient().update_instance_info(
            targeted, host, objects.InstanceList(objects=instances)
        )


def delete_instance_info(host: str, uuid: str) -> None:
    """Tell the schedulers that an instance has left."""
    query.SchedulerQueryClient().delete_instance_info(contexts.admin(), host, uuid)


def sync_instance_info(host: str, uuids: Sequence[str]) -> None:
    """Tell the schedulers which instances a host has."""
    query.SchedulerQueryClient().sync_instance_info(contexts.admin(), host, list(uuids))
