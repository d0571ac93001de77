"""ComputeFilter: the compute service is enabled and alive.  Reference page filters, section 6.2."""

from collections.abc import Iterator
from typing import Any

from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.hosts.candidates import Candidates

DISABLED = Reason("compute.disabled", "the compute service is disabled")
DOWN = Reason("compute.down", "the compute service has not been heard from in a while")


class ComputeFilter(HostFilter):
    """Passes hosts whose compute service is enabled, not forced down, and heard from in time."""

    run_filter_once_per_request = True
    is_rule = False
    reasons = (DISABLED, DOWN)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        yield DISABLED, ~hosts.service_disabled
        yield DOWN, hosts.service_up
