"""PciPassthroughFilter: PCI devices.  Reference pages filters, 6.25, and numa_pci, 7 and 8.2."""

from collections.abc import Iterator
from typing import Any

from scheduler import pci
from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.hosts.candidates import Candidates
from scheduler.hosts.host_state import POOLS, Fitting

UNREPORTED = Reason("pci.unreported", "the host never reported what PCI devices it has")
LACKING = Reason("pci.lacking", "the host lacks free PCI devices of the kinds wanted")


class PciPassthroughFilter(HostFilter):
    """Passes hosts that can serve all requests for devices together, wherever they sit."""

    is_rule = False
    reasons = (UNREPORTED, LACKING)

    def __init__(self, conf: Any) -> None:
        super().__init__(conf)
        self.semantics = Fitting.from_conf(conf).semantics.pci

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Pools, and enough in them; nothing for requests without devices."""
        requests = pci.requests_of(request.pci_requests)
        if not requests:
            return

        def serve(pools: pci.Pools | None) -> bool:
            return pools is None or pci.supports(pools, requests, None, self.semantics)

        known = hosts.per_document(POOLS, lambda pools: pools is not None, key="known")
        yield UNREPORTED, known
        yield LACKING, hosts.per_document(POOLS, serve, key=(self, requests))
