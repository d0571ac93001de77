"""ComputeFilter: the compute service is enabled and alive.  Reference page filters, section 6.2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from oslo_log import log as logging

from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.hosts.candidates import Candidates

LOG = logging.getLogger(__name__)

DISABLED = Reason("compute.disabled", "the compute service is disabled")
DOWN = Reason("compute.down", "the compute service has not been heard from in a while")
_NAMED_AT_MOST = 5


class ComputeFilter(HostFilter):
    """Passes hosts whose compute service is enabled, not forced down, and heard from in time."""

    run_filter_once_per_request = True
    reasons = (DISABLED, DOWN)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Enabled, and up as the candidates' clock has it."""
        del request
        enabled = ~hosts.service_disabled
        yield DISABLED, enabled
        up = hosts.service_up
        _warn_of_silence(hosts, enabled & ~up)
        yield DOWN, up


def _warn_of_silence(hosts: Candidates, silent: np.ndarray) -> None:
    """One line per request: a silent host is an operator's business, whoever asked."""
    positions = np.flatnonzero(silent)
    if not len(positions):
        return
    names = [state.host for state in hosts.take(positions[:_NAMED_AT_MOST]).states()]
    more = len(positions) - len(names)
    LOG.warning(
        "%s%s has not been heard from in a while",
        ", ".join(names),
        f" (and {more} more)" if more else "",
    )
