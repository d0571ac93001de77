"""Memory pages for a guest cell on a host cell (sections 5.4, 10.2 and 10.4)."""

from __future__ import annotations

from scheduler import errors
from scheduler.numa.guest import ANY_PAGES, LARGE_PAGES, SMALL_PAGES, GuestCell
from scheduler.numa.host import HostCell, Pages


def workable_size(host: HostCell, guest: GuestCell) -> int | None:
    """The page size (KiB) that meets the guest's wish, None when no size does."""
    need_kb = guest.memory_kb
    for pages in _candidates(host, guest.pagesize):
        if need_kb <= pages.free_kb and need_kb % pages.size_kb == 0:
            return pages.size_kb
    return None


def smallest(host: HostCell) -> Pages | None:
    """The smallest pages of the cell, None when it lists no pages."""
    return min(host.pages, key=lambda pages: pages.size_kb, default=None)


def size_if_wished(_host: HostCell, guest: GuestCell) -> int | None:
    """Newton: pages of the size that the guest was given; without a wish none are counted."""
    return guest.pagesize if guest.pagesize and guest.pagesize > 0 else None


def size_or_smallest(host: HostCell, guest: GuestCell) -> int:
    """Today: pages of the size that the guest was given, else the smallest of the cell.

    Raises HostPagesUnknown when the cell lists none.
    """
    size = size_if_wished(host, guest)
    if size is not None:
        return size
    pages = smallest(host)
    if pages is None:
        raise errors.HostPagesUnknown(reason=f"NUMA cell {host.id} reports no memory pages")
    return pages.size_kb


def _candidates(host: HostCell, wish: int | None) -> list[Pages]:
    by_size = sorted(host.pages, key=lambda pages: pages.size_kb, reverse=True)
    if wish == SMALL_PAGES:
        return by_size[-1:]
    if wish == LARGE_PAGES:
        return by_size[:-1]
    if wish == ANY_PAGES:
        return by_size
    return [pages for pages in by_size if pages.size_kb == wish]
