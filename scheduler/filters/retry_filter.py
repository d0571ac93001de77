"""RetryFilter: not where an earlier attempt failed.  Reference page filters, section 6.4."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oslo_log import log as logging

from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.hosts.candidates import Candidates
from scheduler.hosts.table import HostTable

LOG = logging.getLogger(__name__)

TRIED = Reason("retry.tried", "an earlier attempt to build the server there failed")


def _tried(table: HostTable, request: Any) -> set[int]:
    keys = [(each.host, each.hypervisor_hostname) for each in request.retry.hosts]
    return {table.rows[key] for key in keys if key in table.rows}


class RetryFilter(HostFilter):
    """Passes (host, node) pairs that no earlier attempt went to; compared exactly."""

    reasons = (TRIED,)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Not among the hosts of ``retry``."""
        retry = request.retry
        if not (retry and retry.hosts):
            return
        again = hosts.among(list(_tried(hosts.table, request)))
        if again.any():
            tried = [(each.host, each.hypervisor_hostname) for each in retry.hosts]
            failing = [(state.host, state.nodename) for state in hosts.take(again).states()]
            LOG.info("Host %s fails.  Previously tried hosts: %s", failing, tried)
        yield TRIED, ~again
