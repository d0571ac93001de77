"""Filters that keep servers of one flavor together.  Reference page filters, 6.15 and 6.16."""

from collections.abc import Iterator
from typing import Any

from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.hosts import aggregate_metadata
from scheduler.hosts.candidates import Candidates

OTHER_TYPE = Reason("type.other", "the host runs servers of another flavor")
NOT_NAMED = Reason("aggregate_type.not_named", "the host's aggregates are for other flavors")


class TypeAffinityFilter(HostFilter):
    """Passes hosts that run nothing but servers of the requested flavor, by its number."""

    reasons = (OTHER_TYPE,)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        wanted = request.flavor.id if request.flavor is not None else None
        others = [
            host
            for host, instances in hosts.table.instances.items()
            if any(each.instance_type_id != wanted for each in instances.values())
        ]
        yield OTHER_TYPE, ~hosts.among(hosts.table.rows_showing_instances(others))


class AggregateTypeAffinityFilter(HostFilter):
    """Passes hosts whose aggregates name the flavor, or none, as ``instance_type``."""

    run_filter_once_per_request = True
    reasons = (NOT_NAMED,)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Look for the flavor's name in the lists, separated by commas."""
        wanted = request.flavor.name if request.flavor is not None else None

        def allows(aggregates: list[Any]) -> bool:
            names = aggregate_metadata.split_values(aggregates, "instance_type")
            return not names or wanted in names

        yield NOT_NAMED, hosts.per_document("aggregates", allows, key=("flavor", wanted))
