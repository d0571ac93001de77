"""Fit a guest onto a host, place it there, and count it (sections 5.1, 6, 8.3, 10.2, 10.3).

Host and pools are values: keeping the earlier ones is undoing the placement.
"""

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
    Pages,
    reachable,
)
from scheduler.pci import Pool, Pools, Request, allocate, supports


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


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules for giving out cells and devices; *pack* fills one cell before the next.

    It does so where the semantics order the cells of a host.
    """

    semantics: NumaSemantics = CURRENT
    pack: bool = False


@dataclass(frozen=True, slots=True)
class Wish:
    """The cells and devices that one instance asks for, and how far cells may be overcommitted.

    Without *limits* no ratio is checked.
    """

    guest: GuestTopology | None
    requests: tuple[Request, ...] = ()
    limits: Limits | None = None
    fitting: Rules = Rules()

    def fit(self, host: HostTopology | None, pools: Pools | None = None) -> GuestTopology | None:
        """The guest on the host's cells, with ids, page sizes and pins; None if it does not fit.

        The first selection of host cells that fits wins, in lexicographic order.  *pools* near
        the chosen cells must serve the requests.
        """
        guest, semantics = self.guest, self.fitting.semantics
        if not host or not guest or len(guest) > len(host) or self._lacks(pools):
            return None
        order = semantics.order(host, guest, pools, bool(self.requests), self.fitting.pack)
        search = _Search(order, guest, self._terms, partial(self._is_served, host, pools))
        return replace(guest, cells=tuple(search.fitted)) if search.place(0, 0) else None

    def fits(self, host: HostTopology | None, pools: Pools | None = None) -> bool:
        """True when ``fit`` finds cells for the guest.

        A guest of one cell needs no search, and no CPUs picked where their number decides: 9,000
        states of hosts take 0.1 s so, with a search 0.6 s.
        """
        if self.guest is None or not is_counted(self.guest, self.fitting.semantics):
            return self.fit(host, pools) is not None
        if not host or self._lacks(pools):
            return False
        [wanted], terms = self.guest.cells, self._terms(0)
        return any(
            may_pair(cell, wanted, terms) and self._is_served(host, pools, (cell,))
            for cell in host.cells
        )

    def place(self, host: HostTopology | None, pools: Pools | None = None) -> Placement:
        """Fit the guest again, count it and take its devices, in the order of the semantics.

        Never raises for a guest that does not fit; the filters decide that.
        """
        semantics = self.fitting.semantics
        if host and self.guest:
            guest = fitted = self.fit(host, pools)
        else:
            guest, fitted = (self.guest if semantics.keeps_wishes_without_host else None), None
        placement = Placement(host, pools, guest)
        if semantics.counts_before_devices:
            placement = self._count(placement, fitted)
            return placement if placement.error else self._take(placement)
        placement = self._take(placement)
        return placement if placement.error else self._count(placement, fitted)

    def _terms(self, position: int) -> Terms:
        """The terms of guest cell number *position*; the emulator's CPU is beside cell 0."""
        policy = None if self.guest is None else self.guest.emulator_threads_policy
        reserve = int(position == 0 and policy == "isolate")
        return Terms(reserve, self.limits, self.fitting.semantics)

    def _lacks(self, pools: Pools | None) -> bool:
        is_unknown = bool(self.requests) and pools is None
        return is_unknown and self.fitting.semantics.missing_pools_refuse

    def _is_served(
        self, host: HostTopology, pools: Pools | None, chosen: Sequence[HostCell]
    ) -> bool:
        """True when devices and networks are near the *chosen* cells."""
        if self.requests and pools is not None:
            cells = host.around(frozenset([cell.id for cell in chosen]))
            if not supports(pools, self.requests, cells, self.fitting.semantics.pci):
                return False
        networks = None if self.limits is None else self.limits.networks
        return reachable(networks, chosen, host.cells)

    def _count(self, placement: Placement, fitted: GuestTopology | None) -> Placement:
        if placement.host is None or fitted is None:
            return placement
        try:
            host = consume(placement.host, fitted, self.fitting.semantics)
        except errors.ResourcesNotBooked as exc:
            return replace(placement, error=exc)
        return replace(placement, host=host, counted=fitted)

    def _take(self, placement: Placement) -> Placement:
        if not self.requests or placement.pools is None:
            return placement
        cells, guest = None, placement.guest
        if guest is not None:
            cells = (placement.host or HostTopology()).around(guest.cell_ids)
        semantics = self.fitting.semantics.pci
        allocation = allocate(placement.pools, self.requests, cells, semantics)
        error = None if allocation.complete else errors.PciDeviceRequestFailed()
        return replace(placement, pools=allocation.pools, taken=allocation.taken, error=error)


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
        terms_of: Callable[[int], Terms],
        is_served: Callable[[Sequence[HostCell]], bool],
    ) -> None:
        self.order = order
        self.is_served = is_served
        self.terms = [terms_of(position) for position in range(len(guest))]
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


def consume(host: HostTopology, guest: GuestTopology, semantics: NumaSemantics) -> HostTopology:
    """The host with one fitted *guest* more, whose cells find theirs by id.

    Raises one of the ResourcesNotBooked errors, and then nothing was counted.
    """
    wanted = {cell.id: cell for cell in guest.cells}
    after = []
    for cell in host.cells:
        mine = wanted.get(cell.id)
        if mine is not None:
            size_kb = semantics.counted_pages(cell, mine)
            cell = replace(
                cell,
                memory_usage_mb=max(0, cell.memory_usage_mb + mine.memory_mb),
                cpu_usage=max(0, cell.cpu_usage + semantics.counted_cpus(cell, mine)),
                pinned=_pinned_after(cell, mine, semantics) if guest.is_pinned else cell.pinned,
                pages=cell.pages if size_kb is None else _pages_after(cell, mine, size_kb),
            )
        after.append(cell)
    return HostTopology(tuple(after))


def _pinned_after(host: HostCell, guest: GuestCell, semantics: NumaSemantics) -> frozenset[int]:
    cpus = guest.pinned_to | guest.reserved
    if guest.thread_policy == "isolate":
        touched = [core for core in semantics.isolated_cores(host) if core & cpus]
        cpus = frozenset().union(*touched)
    place = f"CPUs {sorted(cpus)} of NUMA cell {host.id}, where"
    if not cpus <= host.pinnable:
        reason = f"{place} only {sorted(host.pinnable)} may be pinned"
        raise errors.CPUPinningUnknown(reason=reason)
    if cpus & host.pinned:
        reason = f"{place} {sorted(host.pinned)} are pinned already"
        raise errors.CPUPinningInvalid(reason=reason)
    return host.pinned | cpus


def _pages_after(host: HostCell, guest: GuestCell, size_kb: int) -> tuple[Pages, ...]:
    taken = guest.memory_kb // size_kb
    return tuple(
        replace(each, used=max(0, each.used + taken)) if each.size_kb == size_kb else each
        for each in host.pages
    )
