"""In which order the cells of a host are tried (sections 5.1, 10.1 and 10.4)."""

from __future__ import annotations

from collections.abc import Callable

from scheduler.numa.guest import GuestTopology
from scheduler.numa.host import HostCell, HostTopology
from scheduler.pci import Pools

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
    """Today, where there is a choice: the emptiest cells first, with *pack* the fullest.

    Above that, cells with many PCI devices come first for a guest that wants devices and last
    for one that does not.
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
