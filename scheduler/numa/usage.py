"""Counting guests into a host's cells (sections 6 and 10.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from scheduler import errors
from scheduler.numa.pairing import complete_cores
from scheduler.numa.topology import GuestCell, GuestTopology, HostCell, HostTopology, Pages

if TYPE_CHECKING:
    from scheduler.numa.semantics import NumaSemantics


def usage(
    host: HostTopology, guests: Sequence[GuestTopology], semantics: NumaSemantics
) -> HostTopology:
    """The host with *guests* counted in.

    Guest cells find their host cell by id; others are ignored.  Raises one of the
    ResourcesNotBooked errors, and then nothing was counted.
    """
    return HostTopology(tuple(_cell_after(cell, guests, semantics) for cell in host.cells))


def consume(host: HostTopology, guest: GuestTopology, semantics: NumaSemantics) -> HostTopology:
    """The host with one fitted guest more; raises as :func:`usage`."""
    return usage(host, (guest,), semantics)


def _cell_after(
    host: HostCell, guests: Iterable[GuestTopology], semantics: NumaSemantics
) -> HostCell:
    mine = [
        (cell, guest.is_pinned) for guest in guests for cell in guest.cells if cell.id == host.id
    ]
    if not mine:
        return host
    memory_mb, cpus, pinned, pages = host.memory_usage_mb, host.cpu_usage, host.pinned, host.pages
    for cell, is_pinned in mine:
        memory_mb += cell.memory_mb
        cpus += semantics.counted_cpus(host, cell)
        before = pages if semantics.pages_add_up else host.pages
        size_kb = semantics.counted_pages(host, cell)
        pages = before if size_kb is None else _pages_after(before, cell, size_kb)
        if is_pinned:
            pinned = _pinned_after(host, pinned, _own_cpus(host, cell, semantics))
    return replace(
        host,
        memory_usage_mb=max(0, memory_mb),
        cpu_usage=max(0, cpus),
        pinned=pinned,
        pages=pages,
    )


def all_cpus(host: HostCell, guest: GuestCell) -> int:
    """Newton: every CPU counts, with ``isolate`` the threads that it keeps idle as well."""
    isolated = guest.thread_policy == "isolate"
    each = host.threads_per_core if isolated else 1
    return len(guest.cpus) * each + len(guest.reserved)


def floating_cpus(_host: HostCell, guest: GuestCell) -> int:
    """Today: only CPUs that share; what is pinned is known by name."""
    return len(guest.floating)


def listed_siblings(host: HostCell, cpus: frozenset[int]) -> frozenset[int]:
    """Newton: all threads of the cores that *cpus* belong to; nothing where none is listed."""
    return _touched(host.siblings, cpus)


def all_siblings(host: HostCell, cpus: frozenset[int]) -> frozenset[int]:
    """Today: all threads of the cores that *cpus* belong to, at least *cpus* themselves."""
    return _touched(complete_cores(host), cpus)


def _touched(cores: Iterable[frozenset[int]], cpus: frozenset[int]) -> frozenset[int]:
    return frozenset().union(*(core for core in cores if core & cpus))


def _own_cpus(host: HostCell, guest: GuestCell, semantics: NumaSemantics) -> frozenset[int]:
    cpus = guest.pinned_to | guest.reserved
    return semantics.isolated_cpus(host, cpus) if guest.thread_policy == "isolate" else cpus


def _pinned_after(host: HostCell, pinned: frozenset[int], cpus: frozenset[int]) -> frozenset[int]:
    if not cpus <= host.pinnable:
        reason = _conflict(host, cpus, f"only {sorted(host.pinnable)} may be pinned")
        raise errors.CPUPinningUnknown(reason=reason)
    if cpus & pinned:
        reason = _conflict(host, cpus, f"{sorted(pinned)} are pinned already")
        raise errors.CPUPinningInvalid(reason=reason)
    return pinned | cpus


def _conflict(host: HostCell, cpus: frozenset[int], why: str) -> str:
    return f"CPUs {sorted(cpus)} of NUMA cell {host.id}, where {why}"


def _pages_after(pages: tuple[Pages, ...], guest: GuestCell, size_kb: int) -> tuple[Pages, ...]:
    taken = guest.memory_kb // size_kb
    return tuple(
        replace(entry, used=max(0, entry.used + taken)) if entry.size_kb == size_kb else entry
        for entry in pages
    )
