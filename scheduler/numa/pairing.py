"""One guest cell on one host cell: the checks, each of which may refuse (sections 5.2, 10.3).

A check gives the guest cell as it is afterwards, or None.  What checks before a refusal have
settled stays settled for the guest's next attempt, as in Nova (section 5.4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from scheduler.numa.guest import GuestCell
from scheduler.numa.host import HostCell
from scheduler.numa.limits import Limits
from scheduler.numa.pages import smallest, workable_size
from scheduler.numa.pinning import pack

if TYPE_CHECKING:
    from scheduler.numa.semantics import NumaSemantics


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for the pair beside the two cells; *reserve* CPUs for the emulator."""

    reserve: int
    limits: Limits | None
    semantics: NumaSemantics


Check = Callable[[HostCell, GuestCell, Terms], GuestCell | None]


def pair(host: HostCell, guest: GuestCell, terms: Terms) -> tuple[bool, GuestCell]:
    """Whether the guest cell fits the host cell, and what the attempt has made of it."""
    for check in terms.semantics.checks:
        after = check(host, guest, terms)
        if after is None:
            return False, guest
        guest = after
    return True, replace(guest, id=host.id)


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


def pages_if_wished(host: HostCell, guest: GuestCell, _terms: Terms) -> GuestCell | None:
    """Newton: a wish for pages is met; without one nothing is asked."""
    if guest.pagesize is None:
        return guest
    size = workable_size(host, guest)
    return None if size is None else replace(guest, pagesize=size)


def pages_or_memory(host: HostCell, guest: GuestCell, terms: Terms) -> GuestCell | None:
    """Today: a wish is met; without one the smallest pages hold the guest.

    All of them count, so that memory may be overcommitted; for pinned guests only free ones.
    """
    if guest.pagesize is not None:
        return pages_if_wished(host, guest, terms)
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
