"""Networks that are tied to cells (section 10.2)."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.numa.host import HostCell, Networks


def reachable(
    wanted: Networks | None, chosen: Sequence[HostCell], host: Sequence[HostCell]
) -> bool:
    """Whether a guest on the *chosen* cells is near the networks that it wants.

    A network tied to no cell of the *host* is near everywhere.
    """
    if wanted is None:
        return True
    near = [cell.networks for cell in chosen if cell.networks is not None]
    tied = [cell.networks for cell in host if cell.networks is not None]
    missing = wanted.physnets.difference(*(networks.physnets for networks in near))
    if any(missing & networks.physnets for networks in tied):
        return False
    if not wanted.tunneled or any(networks.tunneled for networks in near):
        return True
    return not any(networks.tunneled for networks in tied)
