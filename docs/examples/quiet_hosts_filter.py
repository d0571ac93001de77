"""QuietHostsFilter: only hosts where few builds are going on.  Copy it to begin your own.

[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
available_filters = quiet_hosts_filter.QuietHostsFilter
enabled_filters = ComputeFilter, QuietHostsFilter
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scheduler.filters import Condition, HostFilter, Reason
from scheduler.hosts.candidates import Candidates

BUSY = Reason("quiet_hosts.busy", "Too many builds are going on.")

#: A host with as many builds or more is busy.
BUILDS = 3


class QuietHostsFilter(HostFilter):
    """Only hosts with fewer than three builds going on."""

    reasons = (BUSY,)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """The number that the host reported, and what was placed there since."""
        del request
        yield BUSY, hosts.num_io_ops < BUILDS
