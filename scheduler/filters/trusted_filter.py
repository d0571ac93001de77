"""TrustedFilter: nodes that an attestation server vouches for.

The one filter that asks a server while a decision is taken, and only for flavors that demand
trust.  Reference page filters, section 6.27.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oslo_log import log as logging

from scheduler.filters.attestation import AttestationService, TrustCache
from scheduler.filters.base import Condition, HostFilter, Reason, extra_specs_of
from scheduler.hosts.candidates import Candidates

LOG = logging.getLogger(__name__)

OTHER_LEVEL = Reason("trusted.other", "the node's level of trust is not the one asked for")

_EXTRA_SPEC = "trust:trusted_host"


class TrustedFilter(HostFilter):
    """Passes nodes whose level of trust is the flavor's ``trust:trusted_host``, exactly."""

    run_filter_once_per_request = True
    reasons = (OTHER_LEVEL,)

    def __init__(self, conf: Any) -> None:
        super().__init__(conf)
        LOG.warning("TrustedFilter asks an attestation server while it decides.")
        service = AttestationService(conf.trusted_computing)
        self.cache = TrustCache(service, conf.trusted_computing.attestation_auth_timeout)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """The server is asked about all nodes at once if what is known of one has expired."""
        if wanted := _wanted(request):
            nodes = {node for _host, node in hosts.table.rows if node is not None}
            asked = {state.nodename for state in hosts} - {None}
            levels = self.cache.levels(asked, nodes, hosts.scope.now)
            yield (
                OTHER_LEVEL,
                hosts.per_value("nodename", lambda node: levels.get(node) == wanted),
            )


def _wanted(request: Any) -> str | None:
    level: str | None = extra_specs_of(request).get(_EXTRA_SPEC)
    return level
