"""AggregateMultiTenancyIsolation: aggregates for certain projects only.

It keeps others away from those hosts, not those projects from other hosts.  Reference page
filters, section 6.14.
"""

from collections.abc import Iterator
from typing import Any

from scheduler import semantics
from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.hosts import aggregate_metadata
from scheduler.hosts.candidates import Candidates

OTHER_PROJECT = Reason("multitenancy.other", "the host's aggregates are for other projects")


class AggregateMultiTenancyIsolation(HostFilter):
    """Passes hosts whose aggregates name the project, or none, as ``filter_tenant_id``."""

    run_filter_once_per_request = True
    reasons = (OTHER_PROJECT,)

    def __init__(self, conf: Any) -> None:
        super().__init__(conf)
        self.is_tenant_key = semantics.from_conf(conf).is_tenant_key

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Look for the project in the lists, separated by commas."""

        def admits(aggregates: list[Any]) -> bool:
            keys = filter(self.is_tenant_key, aggregate_metadata.keys(aggregates))
            allowed = set[str]().union(
                *(aggregate_metadata.split_values(aggregates, key) for key in keys)
            )
            return not allowed or request.project_id in allowed

        yield (
            OTHER_PROJECT,
            hosts.per_document("aggregates", admits, key=(self, request.project_id)),
        )
