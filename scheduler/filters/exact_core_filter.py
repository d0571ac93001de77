"""ExactCoreFilter: all the host's free processors.  Reference page filters, section 6.8."""

from collections.abc import Iterator
from typing import Any

from oslo_log import log as logging

from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.hosts.candidates import Candidates
from scheduler.hosts.host_state import HostState

LOG = logging.getLogger(__name__)

UNKNOWN = Reason("exact_core.unknown", "the host does not report its processors")
DIFFERENT = Reason("exact_core.different", "not exactly the processors asked for are free")


class ExactCoreFilter(HostFilter):
    """Passes hosts with exactly as many free processors as the flavor has; no overcommit."""

    reasons = (UNKNOWN, DIFFERENT)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Processors known, and as many free as wanted."""
        known = hosts.vcpus_total != 0
        if not known.all():
            LOG.warning("VCPUs not set; assuming CPU collection broken")
        yield UNKNOWN, known
        yield DIFFERENT, hosts.vcpus_total - hosts.vcpus_used == request.vcpus

    def limits(self, host_state: HostState, request: Any) -> dict[str, Any]:
        """``vcpu``: all that the host has."""
        del request
        return {"vcpu": host_state.vcpus_total}
