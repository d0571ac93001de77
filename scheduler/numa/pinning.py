"""Packing the pinned CPUs of a guest cell onto the cores of a host cell (section 5.3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from scheduler.numa.guest import GuestCell
from scheduler.numa.host import HostCell, HostTopology

if TYPE_CHECKING:
    from scheduler.numa.semantics import NumaSemantics


Groups = list[list[int]]
Cores = Callable[[HostCell], tuple[frozenset[int], ...]]


@dataclass(frozen=True, slots=True)
class Pinning:
    """Host CPUs for the guest's, in ascending order of these; ``threads`` per guest core."""

    cpus: tuple[int, ...]
    threads: int
    reserved: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Layout:
    cpus: tuple[int, ...]
    threads: int


def listed_cores(host: HostCell) -> tuple[frozenset[int], ...]:
    """Newton: the sibling sets; each CPU is a core only where none is listed."""
    return host.siblings or singles(host.pinnable)


def complete_cores(host: HostCell) -> tuple[frozenset[int], ...]:
    """Today: the sibling sets, and every CPU that is in none of them as a core of its own."""
    listed = frozenset(chain.from_iterable(host.siblings))
    return host.siblings + singles(host.pinnable - listed)


def singles(cpus: frozenset[int]) -> tuple[frozenset[int], ...]:
    """Each of *cpus* as a core, in ascending order."""
    return tuple(frozenset((cpu,)) for cpu in sorted(cpus))


def pack(
    host: HostCell, guest: GuestCell, reserve: int, cores: Cores, may_fall_short: bool
) -> Pinning | None:
    """Host CPUs for the guest's dedicated ones and *reserve* (0 or 1) for the emulator.

    None when the thread policy cannot be met.  With *may_fall_short* the last resort may pin
    fewer CPUs than the guest has.
    """
    wanted = len(guest.dedicated)
    all_cores, free = cores(host), host.free_pinnable
    groups = [sorted(core & free) for core in all_cores if core & free]
    if not groups:
        return None
    full = max(map(len, all_cores))
    isolated = guest.thread_policy == "isolate"
    layouts = _isolated(groups, full, wanted) if isolated else _packed(groups, guest, wanted)
    for layout in layouts:
        if len(layout.cpus) < wanted and not may_fall_short:
            continue
        spare = _spare(groups, layout.cpus, isolated) if reserve else []
        if len(spare) >= reserve:
            return Pinning(layout.cpus, layout.threads, frozenset(spare[:reserve]))
    return None


def _isolated(groups: Groups, full: int, wanted: int) -> Iterator[_Layout]:
    whole = [group for group in groups if len(group) >= full]
    if len(whole) >= wanted:
        yield _Layout(tuple(group[0] for group in whole[:wanted]), 1)


def _packed(groups: Groups, guest: GuestCell, wanted: int) -> Iterator[_Layout]:
    needs_siblings = guest.thread_policy == "require"
    for level in range(max(map(len, groups)), 1 if needs_siblings else 0, -1):
        usable = [group[:level] for group in groups if len(group) >= level]
        if level * len(usable) >= wanted:
            cpus = tuple(chain.from_iterable(usable))[:wanted]
            yield _Layout(cpus, math.gcd(level, wanted % level))
    if not needs_siblings:
        yield _Layout(tuple(chain.from_iterable(groups))[:wanted], 1)


def _spare(groups: Groups, taken: tuple[int, ...], isolated: bool) -> list[int]:
    used = set(taken)
    if isolated:
        groups = [group for group in groups if used.isdisjoint(group)]
    return [cpu for group in groups for cpu in group if cpu not in used]


def siblings_listed(host: HostTopology) -> bool:
    """Newton: some cell lists sibling sets, of whatever size."""
    return any(cell.siblings for cell in host.cells)


def siblings_exist(host: HostTopology) -> bool:
    """Today: some core has more than one thread."""
    return any(cell.threads_per_core > 1 for cell in host.cells)


def lacks_threads(host: HostTopology | None, semantics: NumaSemantics) -> bool:
    """True for a host that has cells, but no sibling threads (section 8.1)."""
    return host is not None and len(host) > 0 and not semantics.has_siblings(host)
