"""RetryFilter: not where an earlier attempt failed.  Reference page filters, section 6.4."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oslo_log import log as logging

from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.hosts.candidates import Candidates
from scheduler.hosts.inputs import Inputs

LOG = logging.getLogger(__name__)

TRIED = Reason("retry.tried", "an earlier attempt to build the server there failed")


class RetryFilter(HostFilter):
    """Passes (host, node) pairs that no earlier attempt went to; compared exactly."""

    reasons = (TRIED,)
    inputs = Inputs(
        of_request=lambda request: None if request.retry and request.retry.hosts else ()
    )

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Not among the hosts of ``retry``."""
        retry = request.retry
        tried = [(each.host, each.hypervisor_hostname) for each in (retry and retry.hosts) or ()]
        if not tried:
            return
        known = hosts.table.rows
        again = hosts.among([known[key] for key in tried if key in known])
        if again.any():
            failing = [(state.host, state.nodename) for state in hosts.take(again).states()]
            LOG.info("Host %s fails.  Previously tried hosts: %s", failing, tried)
        yield TRIED, ~again
