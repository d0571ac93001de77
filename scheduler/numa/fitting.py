"""Fitting a guest topology onto a host, and placing an instance there (sections 5.1, 8.3, 10.3).

Host and pools are values: keeping the earlier ones is undoing the placement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from scheduler import errors
from scheduler.numa.pairing import Terms, is_counted, may_pair, pair
from scheduler.numa.semantics import CURRENT, NumaSemantics
from scheduler.numa.topology import (
    GuestCell,
    GuestTopology,
    HostCell,
    HostTopology,
    Limits,
    reachable,
)
from scheduler.numa.usage import consume
from scheduler.pci import Pool, Pools, Request, allocate, supports


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
    """The guest on the host's cells, with ids, page sizes and pins; None if it does not fit.

    The first selection of host cells that fits wins, in lexicographic order.  Without *limits*
    no ratio is checked.  *pools* near the chosen cells must serve *requests*.  *pack* asks
    for the fullest cells first where the semantics order the cells.
    """
    if not host or not guest or len(guest) > len(host):
        return None
    if requests and pools is None and semantics.missing_pools_refuse:
        return None
    order = semantics.order(host, guest, pools, bool(requests), pack)
    is_served = partial(_is_served, host, limits, requests, pools, semantics)
    search = _Search(order, guest, limits, semantics, is_served)
    return replace(guest, cells=tuple(search.fitted)) if search.place(0, 0) else None


def fits(
    host: HostTopology,
    guest: GuestTopology,
    limits: Limits | None = None,
    requests: Sequence[Request] = (),
    pools: Pools | None = None,
    semantics: NumaSemantics = CURRENT,
    *,
    pack: bool = False,
) -> bool:
    """True when ``fit`` finds cells for the guest.

    A guest of one cell needs no search, and no CPUs picked where their number decides: 9,000
    states of hosts take 0.1 s so, with a search 0.6 s.
    """
    if not is_counted(guest, semantics):
        how = semantics
        return fit(host, guest, limits, requests, pools, how, pack=pack) is not None
    if not host or (requests and pools is None and semantics.missing_pools_refuse):
        return False
    [wanted] = guest.cells
    terms = Terms(int(guest.isolates_emulator), limits, semantics)
    is_served = partial(_is_served, host, limits, requests, pools, semantics)
    return any(may_pair(cell, wanted, terms) and is_served((cell,)) for cell in host.cells)


def _is_served(
    host: HostTopology,
    limits: Limits | None,
    requests: Sequence[Request],
    pools: Pools | None,
    semantics: NumaSemantics,
    chosen: Sequence[HostCell],
) -> bool:
    """True when devices and networks are near the *chosen* cells."""
    if requests and pools is not None:
        cells = host.around(frozenset([cell.id for cell in chosen]))
        if not supports(pools, requests, cells, semantics.pci):
            return False
    return reachable(None if limits is None else limits.networks, chosen, host.cells)


class _Search:
    """One search through the selections of host cells, depth first.

    A guest cell keeps the page size that an earlier attempt settled.  The remaining selections
    depend only on the host cells in use and on those page sizes.  A combination that failed is
    not tried again, which keeps the effort far below all permutations.
    """

    def __init__(
        self,
        order: tuple[HostCell, ...],
        guest: GuestTopology,
        limits: Limits | None,
        semantics: NumaSemantics,
        is_served: Callable[[Sequence[HostCell]], bool],
    ) -> None:
        self.order = order
        self.is_served = is_served
        self.terms = [
            Terms(int(position == 0 and guest.isolates_emulator), limits, semantics)
            for position in range(len(guest))
        ]
        self.now = [cell.unplaced() for cell in guest.cells]
        self.fitted: list[GuestCell] = []
        self.pairs: dict[tuple[int, int, int | None], tuple[bool, GuestCell]] = {}
        self.dead: set[tuple[int, tuple[int | None, ...]]] = set()

    def place(self, depth: int, used: int) -> bool:
        """Fit the guest cells from number *depth* on, beside the host cells *used* (a bit mask)."""
        if depth == len(self.now):
            ids = {cell.id for cell in self.fitted}
            return self.is_served([cell for cell in self.order if cell.id in ids])
        state = (used, tuple(cell.pagesize for cell in self.now[depth:]))
        if state in self.dead:
            return False
        for number in range(len(self.order)):
            mask = 1 << number
            if not used & mask and self._pair(depth, number) and self.place(depth + 1, used | mask):
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


@dataclass(frozen=True, slots=True)
class Placement:
    """A host's cells and pools after an instance was placed on it.

    ``guest`` is what the next instance of the same request starts from.  ``counted`` is the guest
    that the cells now include, ``taken`` the devices that left the pools.  After an ``error``
    the later steps were not done.
    """

    host: HostTopology | None
    pools: Pools | None
    guest: GuestTopology | None
    counted: GuestTopology | None = None
    taken: tuple[Pool, ...] = ()
    error: errors.ResourcesNotBooked | None = None


def place(
    host: HostTopology | None,
    guest: GuestTopology | None,
    limits: Limits | None = None,
    requests: Sequence[Request] = (),
    pools: Pools | None = None,
    semantics: NumaSemantics = CURRENT,
    *,
    pack: bool = False,
) -> Placement:
    """Fit the guest again, count it and take its devices, in the order of the semantics.

    Never raises for a guest that does not fit; the filters decide that.
    """
    if host and guest:
        guest = fit(host, guest, limits, requests, pools, semantics, pack=pack)
        fitted = guest
    else:
        guest, fitted = (guest if semantics.keeps_wishes_without_host else None), None
    placement = Placement(host, pools, guest)
    if semantics.counts_before_devices:
        placement = _count(placement, fitted, semantics)
        return placement if placement.error else _take(placement, requests, semantics)
    placement = _take(placement, requests, semantics)
    return placement if placement.error else _count(placement, fitted, semantics)


def _count(
    placement: Placement, fitted: GuestTopology | None, semantics: NumaSemantics
) -> Placement:
    if placement.host is None or fitted is None:
        return placement
    try:
        host = consume(placement.host, fitted, semantics)
    except errors.ResourcesNotBooked as exc:
        return replace(placement, error=exc)
    return replace(placement, host=host, counted=fitted)


def _take(placement: Placement, requests: Sequence[Request], semantics: NumaSemantics) -> Placement:
    if not requests or placement.pools is None:
        return placement
    cells = None
    if placement.guest is not None:
        cells = (placement.host or HostTopology()).around(placement.guest.cell_ids)
    allocation = allocate(placement.pools, requests, cells, semantics.pci)
    error = None if allocation.complete else errors.PciDeviceRequestFailed()
    return replace(placement, pools=allocation.pools, taken=allocation.taken, error=error)
