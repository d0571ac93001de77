"""One guest cell on one host cell: the order of trying, the checks, memory pages and pinned CPUs.

A check returns the guest cell as it is afterwards, or None.  What the checks before a refusal
settled stays settled for the guest's next attempt, as in Nova (numa_pci, section 5.4).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from scheduler import errors
from scheduler.numa.topology import (
    ANY_PAGES,
    LARGE_PAGES,
    SMALL_PAGES,
    GuestCell,
    GuestTopology,
    HostCell,
    HostTopology,
    Limits,
    Pages,
)
from scheduler.pci import Pools

if TYPE_CHECKING:
    from scheduler.numa.semantics import NumaSemantics

Order = Callable[[HostTopology, GuestTopology, Pools | None, bool, bool], tuple[HostCell, ...]]


def by_room(
    host: HostTopology, guest: GuestTopology, pools: Pools | None, wants_devices: bool, pack: bool
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
    semantics: "NumaSemantics"


Check = Callable[[HostCell, GuestCell, Terms], GuestCell | None]


def pair(host: HostCell, guest: GuestCell, terms: Terms) -> tuple[bool, GuestCell]:
    """The result of all checks, and the guest cell as they left it."""
    for check in terms.semantics.checks:
        after = check(host, guest, terms)
        if after is None:
            return False, guest
        guest = after
    return True, replace(guest, id=host.id)


def is_counted(guest: GuestTopology, semantics: "NumaSemantics") -> bool:
    """True when ``may_pair`` decides: one cell, any threads, a page size that is one.

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
    if guest.is_pinned and not guest.dedicated:
        return without_pins(host, guest, terms)
    needed = len(guest.dedicated) + terms.reserve
    is_served = not guest.is_pinned or needed <= len(host.free_pinnable)
    return guest if is_served else None


def without_pins(host: HostCell, guest: GuestCell, terms: Terms) -> GuestCell | None:
    """A pinned cell without CPUs to pin: none of a dedicated guest, some of a mixed one.

    As today's Nova sees it, such a cell takes none for the emulator and isolates nothing, but
    needs free siblings where these are required.
    """
    if guest.policy == "dedicated" or terms.reserve or guest.thread_policy == "isolate":
        return None
    if guest.thread_policy == "require":
        free = host.free_pinnable
        return guest if any(len(core & free) > 1 for core in host.siblings) else None
    return guest


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
    """The pinned CPUs find host CPUs of their own."""
    if not guest.is_pinned:
        return guest
    if not guest.dedicated:
        return without_pins(host, guest, terms)
    semantics, needed = terms.semantics, len(guest.dedicated) + terms.reserve
    if needed > len(host.free_pinnable):
        return None
    if guest.thread_policy == "isolate" and not semantics.can_isolate(host):
        return None
    for cpus, threads, reserved in _layouts(host, guest, semantics.cores(host), terms.reserve):
        if len(cpus) >= len(guest.dedicated) or semantics.may_pin_too_few:
            cores = (len(cpus) // threads, threads)
            return replace(
                guest,
                pins=tuple(zip(sorted(guest.dedicated), cpus, strict=False)),
                reserved=reserved,
                cores=cores if semantics.shows_cores else guest.cores,
            )
    return None


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
    room_kb = pages.free_kb if guest.is_pinned else pages.total * pages.size_kb
    fits = guest.memory_kb <= room_kb and guest.memory_kb % pages.size_kb == 0
    return guest if fits else None


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


# --- pinned CPUs (section 5.3) ----------------------------------------------------------------

Groups = list[list[int]]
Cores = Callable[[HostCell], tuple[frozenset[int], ...]]
Ways = Iterator[tuple[tuple[int, ...], int]]


def complete_cores(host: HostCell) -> tuple[frozenset[int], ...]:
    """Today: the sibling sets, and every CPU that is in none of them as a core of its own."""
    listed = frozenset(chain.from_iterable(host.siblings))
    return host.siblings + singles(host.pinnable - listed)


def singles(cpus: frozenset[int]) -> tuple[frozenset[int], ...]:
    return tuple(frozenset((cpu,)) for cpu in sorted(cpus))


def _layouts(
    host: HostCell, guest: GuestCell, cores: tuple[frozenset[int], ...], reserve: int
) -> Iterator[tuple[tuple[int, ...], int, frozenset[int]]]:
    """Ways to pin the guest's dedicated CPUs, the best first; none where the policy is not met.

    Each has host CPUs, threads per guest core, and *reserve* (0 or 1) CPUs for the emulator.  The
    last resort may have fewer CPUs than the guest.
    """
    wanted, free = len(guest.dedicated), host.free_pinnable
    groups = [sorted(core & free) for core in cores if core & free]
    if not groups:
        return
    isolated = guest.thread_policy == "isolate"
    full = max(map(len, cores))
    ways = _isolated(groups, full, wanted) if isolated else _packed(groups, guest, wanted)
    for cpus, threads in ways:
        spare = _spare(groups, cpus, isolated) if reserve else []
        if len(spare) >= reserve:
            yield cpus, threads, frozenset(spare[:reserve])


def _isolated(groups: Groups, full: int, wanted: int) -> Ways:
    whole = [group for group in groups if len(group) >= full]
    if len(whole) >= wanted:
        yield tuple(group[0] for group in whole[:wanted]), 1


def _packed(groups: Groups, guest: GuestCell, wanted: int) -> Ways:
    needs_siblings = guest.thread_policy == "require"
    for level in range(max(map(len, groups)), 1 if needs_siblings else 0, -1):
        usable = [group[:level] for group in groups if len(group) >= level]
        if level * len(usable) >= wanted:
            cpus = tuple(chain.from_iterable(usable))[:wanted]
            yield cpus, math.gcd(level, wanted % level)
    if not needs_siblings:
        yield tuple(chain.from_iterable(groups))[:wanted], 1


def _spare(groups: Groups, taken: tuple[int, ...], isolated: bool) -> list[int]:
    used = set(taken)
    if isolated:
        groups = [group for group in groups if used.isdisjoint(group)]
    return [cpu for group in groups for cpu in group if cpu not in used]
