"""ExactCoreFilter: all the host's free processors.  Reference page filters, section 6.8."""

from collections.abc import Iterator
from typing import Any

from scheduler.filters.base import Condition, Reason
from scheduler.filters.bounds import ExactFilter, ProcessorFilter
from scheduler.hosts.candidates import Candidates

UNKNOWN = Reason("exact_core.unknown", "the host does not report its processors")
DIFFERENT = Reason("exact_core.different", "not exactly the processors asked for are free")


class ExactCoreFilter(ExactFilter, ProcessorFilter):
    """Passes hosts with exactly as many free processors as the flavor has; no overcommit."""

    reasons = (UNKNOWN, DIFFERENT)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        yield UNKNOWN, ~self.unknown(hosts)
        yield from super().conditions(hosts, request)
