"""NUMATopologyFilter: cells that fit.  Reference pages filters, 6.24, numa_pci, 5, 8.1 and 10."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from scheduler import numa, pci, semantics
from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.hosts.candidates import Candidates
from scheduler.hosts.host_state import (
    LIMITS_KEY,
    POOLS,
    TOPOLOGY,
    Fitting,
    HostState,
    guest_of,
    networks_of,
)

THREADS = Reason("numa.threads", "the server requires sibling threads, which the host lacks")
ABSENT = Reason("numa.absent", "the server has NUMA cells, and the host reports none")
UNFIT = Reason("numa.unfit", "the server's NUMA cells do not fit on the host's")

_READ = (TOPOLOGY, POOLS, "cpu_allocation_ratio", "ram_allocation_ratio")


class NUMATopologyFilter(HostFilter):
    """Passes every host for servers without cells, else those where the cells fit."""

    is_rule = False
    reasons = (THREADS, ABSENT, UNFIT)

    def __init__(self, conf: Any) -> None:
        super().__init__(conf)
        self.fitting = Fitting.from_conf(conf)
        self.RUN_ON_REBUILD = semantics.from_conf(conf).rebuild_checks_cells

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Threads if they are required, cells if some are wanted, and a fit if there are any."""
        if numa.requires_threads(request.flavor, request.image):
            has_threads = self.fitting.semantics.has_siblings
            yield (
                THREADS,
                hosts.per_document(TOPOLOGY, lambda it: not it or has_threads(it), key=has_threads),
            )
        if (guest := guest_of(request)) is None:
            return
        yield ABSENT, hosts.per_document(TOPOLOGY, bool, key="has cells")
        yield UNFIT, self._fits(hosts, guest, request)

    def _fits(self, hosts: Candidates, guest: numa.GuestTopology, request: Any) -> np.ndarray:
        requests, networks = pci.requests_of(request.pci_requests), networks_of(request)
        guest = guest.unplaced()

        def fits(asked: Mapping[int, tuple[Any, ...]]) -> dict[int, bool]:
            found = {}
            for number, (host, pools, cpu_ratio, ram_ratio) in asked.items():
                limits = numa.Limits(cpu_ratio, ram_ratio, networks)
                wish = numa.Wish(guest, requests, limits, self.fitting)
                found[number] = not host or wish.fits(host, pools)
            return found

        return hosts.per_combination(_READ, fits, key=(self, guest, requests, networks))

    def limits(self, host_state: HostState, request: Any) -> dict[str, Any]:
        """``numa_topology``: how far the host's cells may be overcommitted."""
        host = host_state.table.value(host_state.row, TOPOLOGY)
        if not request.numa_topology or not host:
            return {}
        ratios = host_state.cpu_allocation_ratio, host_state.ram_allocation_ratio
        limits = numa.Limits(*ratios, networks_of(request))
        return {LIMITS_KEY: limits.to_object()}
