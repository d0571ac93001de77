"""Fitting a guest topology onto a host topology (section 5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scheduler.numa.guest import GuestCell, GuestTopology
from scheduler.numa.host import HostCell, HostTopology
from scheduler.numa.limits import Limits
from scheduler.numa.networks import reachable
from scheduler.numa.pairing import Terms, pair
from scheduler.numa.semantics import CURRENT, NumaSemantics
from scheduler.pci import Pools, Request, supports


def fit(
    host: HostTopology,
    guest: GuestTopology,
    limits: Limits | None = None,
    requests: Sequence[Request] = (),
    pools: Pools | None = None,
    semantics: NumaSemantics = CURRENT,
    *,
    pack: bool = False,
) -> GuestTopology | None:
    """The guest on the host's cells: ids, page sizes and pins settled; None if it does not fit.

    The first selection of host cells that fits wins, in lexicographic order.  Without *limits*
    no ratio is checked; *requests* must be served by *pools* near the chosen cells; *pack* asks
    for the fullest cells first where the semantics have an order of their own.
    """
    if not host or not guest or len(guest) > len(host):
        return None
    if requests and pools is None and semantics.missing_pools_refuse:
        return None
    search = _Search(host, guest, limits, requests, pools, semantics)
    return search.run(semantics.order(host, guest, pools, bool(requests), pack))


class _Search:
    """One search through the selections of host cells, depth first.

    A guest cell keeps the page size that an earlier attempt settled.  Which of the remaining
    selections succeed depends on nothing but the host cells in use and those page sizes: what
    failed once is not tried again, so that the effort stays far below all permutations.
    """

    def __init__(
        self,
        host: HostTopology,
        guest: GuestTopology,
        limits: Limits | None,
        requests: Sequence[Request],
        pools: Pools | None,
        semantics: NumaSemantics,
    ) -> None:
        self.host = host
        self.guest = guest
        self.requests = requests
        self.pools = pools
        self.semantics = semantics
        self.networks = None if limits is None else limits.networks
        self.terms = [
            Terms(int(position == 0 and guest.isolates_emulator), limits, semantics)
            for position in range(len(guest))
        ]
        self.now = [_unplaced(cell) for cell in guest.cells]
        self.fitted: list[GuestCell] = []
        self.pairs: dict[tuple[int, int, int | None], tuple[bool, GuestCell]] = {}
        self.dead: set[tuple[int, tuple[int | None, ...]]] = set()
        self.order: tuple[HostCell, ...] = ()

    def run(self, order: tuple[HostCell, ...]) -> GuestTopology | None:
        self.order = order
        return replace(self.guest, cells=tuple(self.fitted)) if self._place(0, 0) else None

    def _place(self, depth: int, used: int) -> bool:
        if depth == len(self.now):
            return self._is_served()
        state = (used, tuple(cell.pagesize for cell in self.now[depth:]))
        if state in self.dead:
            return False
        for number in range(len(self.order)):
            mask = 1 << number
            if (
                not used & mask
                and self._pair(depth, number)
                and self._place(depth + 1, used | mask)
            ):
                return True
            del self.fitted[depth:]
        self.dead.add(state)
        return False

    def _pair(self, depth: int, number: int) -> bool:
        guest = self.now[depth]
        key = (depth, number, guest.pagesize)
        if key not in self.pairs:
            self.pairs[key] = pair(self.order[number], guest, self.terms[depth])
        fits, after = self.pairs[key]
        self.now[depth] = replace(guest, pagesize=after.pagesize)
        if fits:
            self.fitted.append(after)
        return fits

    def _is_served(self) -> bool:
        ids = frozenset(cell.id for cell in self.fitted)
        if self.requests and self.pools is not None:
            cells = self.host.around(ids)
            if not supports(self.pools, self.requests, cells, self.semantics.pci):
                return False
        chosen = [cell for cell in self.order if cell.id in ids]
        return reachable(self.networks, chosen, self.host.cells)


def _unplaced(cell: GuestCell) -> GuestCell:
    return replace(cell, pins=None, reserved=frozenset())
