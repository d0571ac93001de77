"""AvailabilityZoneFilter: the host is in the zone asked for.

A zone is ``availability_zone`` metadata of an aggregate; several may be named, separated by
commas.  A host without it is in the default zone.  Reference page filters, section 6.3.
"""

from collections.abc import Iterator
from typing import Any

from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.hosts import aggregate_metadata
from scheduler.hosts.candidates import Candidates

OTHER_ZONE = Reason("availability_zone.other", "the host is not in the availability zone asked for")


class AvailabilityZoneFilter(HostFilter):
    """Passes hosts of the requested zone, compared exactly; every host if none is requested."""

    run_filter_once_per_request = True
    reasons = (OTHER_ZONE,)

    def __init__(self, conf: Any) -> None:
        super().__init__(conf)
        self.default_zone = conf.default_availability_zone

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Look for the zone wanted in those of the host's aggregates, else in the default zone."""
        wanted = request.availability_zone
        if not wanted:
            return

        def in_zone(aggregates: list[Any]) -> bool:
            zones = aggregate_metadata.split_values(aggregates, "availability_zone")
            return wanted in (zones or {self.default_zone})

        yield OTHER_ZONE, hosts.per_document("aggregates", in_zone, key=(self, wanted))
