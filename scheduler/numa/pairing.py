"""One guest cell on one host cell: the order of trying, the checks, and memory pages.

A check returns the guest cell as it is afterwards, or None.  What the checks before a refusal
settled stays settled for the guest's next attempt, as in Nova (numa_pci, section 5.4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from scheduler import errors
from scheduler.numa.guest import ANY_PAGES, LARGE_PAGES, SMALL_PAGES, GuestCell, GuestTopology
from scheduler.numa.host import HostCell, HostTopology, Limits, Pages
from scheduler.numa.pinning import pack
from scheduler.pci import Pools

if TYPE_CHECKING:
    from scheduler.numa.semantics import NumaSemantics


Order = Callable[[HostTopology, GuestTopology, Pools | None, bool, bool], tuple[HostCell, ...]]


def as_reported(
    host: HostTopology,
    _guest: GuestTopology,
    _pools: Pools | None,
    _wants_devices: bool,
    _pack: bool,
) -> tuple[HostCell, ...]:
    """Newton: as the host lists them."""
    return host.cells


def by_room(
    host: HostTopology,
    guest: GuestTopology,
    pools: Pools | None,
    wants_devices: bool,
    pack: bool,
) -> tuple[HostCell, ...]:
    """Today, if there is a choice: the emptiest cells first, with *pack* the fullest.

    Before that, cells with many PCI devices come first for a guest that requests devices, and
    last for one that does not.
    """
    cells = list(host.cells)
    if len(cells) <= len(guest):
        return host.cells
    cells.sort(key=lambda cell: cell.avail_memory_mb, reverse=not pack)
    if guest.cells[0].is_pinned:
        cells.sort(key=lambda cell: len(cell.free_pinnable), reverse=not pack)
    else:
        cells.sort(key=lambda cell: cell.cpu_usage, reverse=pack)
    if pools is not None:
        cells.sort(key=lambda cell: pools.devices_on(cell.id), reverse=wants_devices)
    return tuple(cells)


@dataclass(frozen=True, slots=True)
class Terms:
    """The conditions of a pair beside its cells; *reserve* CPUs are for the emulator."""

    reserve: int
    limits: Limits | None
    semantics: NumaSemantics


Check = Callable[[HostCell, GuestCell, Terms], GuestCell | None]


def pair(host: HostCell, guest: GuestCell, terms: Terms) -> tuple[bool, GuestCell]:
    """The result of all checks, and the guest cell as they left it."""
    for check in terms.semantics.checks:
        after = check(host, guest, terms)
        if after is None:
            return False, guest
        guest = after
    return True, replace(guest, id=host.id)


def is_counted(guest: GuestTopology, semantics: NumaSemantics) -> bool:
    """Whether ``may_pair`` decides about the guest: one cell, any threads, a page size that is one.

    A size that is only bounded is settled by the first attempt, and then holds for the others.
    """
    cell = guest.cells[0] if len(guest) == 1 else None
    return (
        cell is not None
        and not semantics.may_pin_too_few
        and cell.thread_policy not in ("isolate", "require")
        and (cell.pagesize is None or cell.pagesize > 0)
    )


def may_pair(host: HostCell, guest: GuestCell, terms: Terms) -> bool:
    """The result of all checks for the cell of a guest that ``is_counted``."""
    for check in terms.semantics.checks:
        own = cpus_unused if check is cpus_pinned else check
        if own(host, guest, terms) is None:
            return False
    return True


def cpus_unused(host: HostCell, guest: GuestCell, terms: Terms) -> GuestCell | None:
    """As :func:`cpus_pinned` where every free CPU serves: their number decides."""
    needed = len(guest.dedicated) + terms.reserve
    if guest.policy == "dedicated" and not guest.dedicated:
        return None
    is_served = not guest.is_pinned or needed <= len(host.free_pinnable)
    return guest if is_served else None


def memory_exists(host: HostCell, guest: GuestCell, _terms: Terms) -> GuestCell | None:
    """The cell has that much memory, used or not."""
    return guest if guest.memory_mb <= host.memory_mb else None


def cpus_exist(host: HostCell, guest: GuestCell, terms: Terms) -> GuestCell | None:
    """The cell has that many CPUs of the kinds wanted, used or not."""
    if guest.is_pinned and len(guest.dedicated) + terms.reserve > len(host.pinnable):
        return None
    if guest.policy != "dedicated" and len(guest.floating) > len(host.cpus):
        return None
    return guest


def memory_unused(host: HostCell, guest: GuestCell, _terms: Terms) -> GuestCell | None:
    """Memory of pinned guests is never overcommitted."""
    return guest if not guest.is_pinned or guest.memory_mb <= host.avail_memory_mb else None


def memory_unused_unless_paged(host: HostCell, guest: GuestCell, terms: Terms) -> GuestCell | None:
    """As :func:`memory_unused`, where the cell lists no pages to count instead."""
    return guest if host.pages else memory_unused(host, guest, terms)


def cpus_pinned(host: HostCell, guest: GuestCell, terms: Terms) -> GuestCell | None:
    """The pinned CPUs find host CPUs of their own.

    A cell of the mixed policy need not have any; a dedicated cell without CPUs never fits.
    """
    needed = len(guest.dedicated) + terms.reserve
    if guest.policy == "dedicated" and not guest.dedicated:
        return None
    if not guest.is_pinned or not needed:
        return guest
    semantics = terms.semantics
    if needed > len(host.free_pinnable):
        return None
    if guest.thread_policy == "isolate" and not semantics.can_isolate(host):
        return None
    pinning = pack(host, guest, terms.reserve, semantics.cores, semantics.may_pin_too_few)
    if pinning is None:
        return None
    cores = (len(pinning.cpus) // pinning.threads, pinning.threads)
    return replace(
        guest,
        pins=tuple(zip(sorted(guest.dedicated), pinning.cpus, strict=False)),
        reserved=pinning.reserved,
        cores=cores if semantics.shows_cores else guest.cores,
    )


def within_limits(host: HostCell, guest: GuestCell, terms: Terms) -> GuestCell | None:
    """Floating CPUs, and the memory with them, stay within the ratios."""
    limits = terms.limits
    if guest.policy == "dedicated" or limits is None:
        return guest
    memory_mb = host.memory_usage_mb + guest.memory_mb
    cpus = host.cpu_usage + len(guest.floating)
    if memory_mb > host.memory_mb * limits.ram_ratio or cpus > len(host.cpus) * limits.cpu_ratio:
        return None
    return guest


def pages_if_requested(host: HostCell, guest: GuestCell, _terms: Terms) -> GuestCell | None:
    """Newton: a requested page size must fit; without one nothing is checked."""
    if guest.pagesize is None:
        return guest
    size = workable_size(host, guest)
    if size is None or size == guest.pagesize:
        return None if size is None else guest
    return replace(guest, pagesize=size)


def pages_or_memory(host: HostCell, guest: GuestCell, terms: Terms) -> GuestCell | None:
    """Today: a requested page size must fit; without one the smallest pages hold the guest.

    All of them count, as memory may be overcommitted; for pinned guests only free ones.
    """
    if guest.pagesize is not None:
        return pages_if_requested(host, guest, terms)
    pages = smallest(host)
    if pages is None:
        return memory_exists(host, guest, terms)
    room_kb = pages.free_kb if guest.is_pinned else pages.total_kb
    fits = guest.memory_kb <= room_kb and guest.memory_kb % pages.size_kb == 0
    return guest if fits else None


def any_host_isolates(_host: HostCell) -> bool:
    """Newton: every host may leave the other threads of a core unused."""
    return True


def only_undivided_hosts_isolate(host: HostCell) -> bool:
    """Today: not where threads are siblings and CPUs are divided into shared and dedicated."""
    return host.threads_per_core == 1 or host.pinnable == host.cpus


def workable_size(host: HostCell, guest: GuestCell) -> int | None:
    """The page size (KiB) that serves the guest's request; None when no size does."""
    need_kb = guest.memory_kb
    for pages in _candidates(host, guest.pagesize):
        if need_kb <= pages.free_kb and need_kb % pages.size_kb == 0:
            return pages.size_kb
    return None


def smallest(host: HostCell) -> Pages | None:
    """The smallest pages of the cell, None when it lists no pages."""
    return min(host.pages, key=lambda pages: pages.size_kb, default=None)


def size_if_requested(_host: HostCell, guest: GuestCell) -> int | None:
    """Newton: pages of the size that the guest was given; without one none are counted."""
    return guest.pagesize if guest.pagesize and guest.pagesize > 0 else None


def size_or_smallest(host: HostCell, guest: GuestCell) -> int:
    """Today: pages of the size that the guest was given, else the smallest of the cell.

    Raises HostPagesUnknown when the cell lists none.
    """
    size = size_if_requested(host, guest)
    if size is not None:
        return size
    pages = smallest(host)
    if pages is None:
        raise errors.HostPagesUnknown(reason=f"NUMA cell {host.id} reports no memory pages")
    return pages.size_kb


def _candidates(host: HostCell, requested: int | None) -> list[Pages]:
    by_size = sorted(host.pages, key=lambda pages: pages.size_kb, reverse=True)
    if requested == SMALL_PAGES:
        return by_size[-1:]
    if requested == LARGE_PAGES:
        return by_size[:-1]
    if requested == ANY_PAGES:
        return by_size
    return [pages for pages in by_size if pages.size_kb == requested]
