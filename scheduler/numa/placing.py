"""What one instance takes from its host's cells and PCI pools.

Host and pools are values: who keeps those from before has undone it.  Follows reference page
numa_pci, sections 8.3 and 10.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from scheduler import errors
from scheduler.numa import usage
from scheduler.numa.fitting import fit
from scheduler.numa.guest import GuestTopology
from scheduler.numa.host import HostTopology
from scheduler.numa.limits import Limits
from scheduler.numa.semantics import CURRENT, NumaSemantics
from scheduler.pci import Pool, Pools, Request, book


@dataclass(frozen=True, slots=True)
class Placement:
    """A host's cells and pools after an instance was placed on it.

    ``guest`` is what the next instance of the same request starts from, ``counted`` the guest
    that the cells include now, ``taken`` the devices that left the pools.  After an ``error``
    the steps behind the one that failed were not done.
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

    Never raises for a guest that does not fit: whether it does is the filters' question.
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
        host = usage.consume(placement.host, fitted, semantics)
    except errors.ResourcesNotBooked as exc:
        return replace(placement, error=exc)
    return replace(placement, host=host, counted=fitted)


def _take(placement: Placement, requests: Sequence[Request], semantics: NumaSemantics) -> Placement:
    if not requests or placement.pools is None:
        return placement
    cells = None
    if placement.guest is not None:
        cells = (placement.host or HostTopology()).around(placement.guest.cell_ids)
    booking = book(placement.pools, requests, cells, semantics.pci)
    error = None if booking.complete else errors.PciDeviceRequestFailed()
    return replace(placement, pools=booking.pools, taken=booking.taken, error=error)
