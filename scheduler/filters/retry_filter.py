"""RetryFilter: not where an earlier attempt failed.  Reference page filters, section 6.4."""

from collections.abc import Iterator
from typing import Any

from oslo_log import log as logging

from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.hosts.candidates import Candidates

LOG = logging.getLogger(__name__)

TRIED = Reason("retry.tried", "an earlier attempt to build the server there failed")


class RetryFilter(HostFilter):
    """Passes (host, node) pairs that no earlier attempt went to; compared exactly."""

    is_rule = False
    reasons = (TRIED,)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        retry = request.retry
        if not (retry and retry.hosts):
            return
        tried = [(each.host, each.hypervisor_hostname) for each in retry.hosts]
        rows = hosts.table.rows
        again = hosts.among([rows[pair] for pair in set(tried) if pair in rows])
        if again.any():
            failing = [(state.host, state.nodename) for state in hosts.take(again).states()]
            LOG.info("Host %s fails.  Previously tried hosts: %s", failing, tried)
        yield TRIED, ~again
