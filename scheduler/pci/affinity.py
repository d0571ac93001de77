"""Which pools are near enough to the host cells of a guest (sections 7.5, 10.1 and 10.3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scheduler.pci.pools import Pool
from scheduler.pci.requests import Request


@dataclass(frozen=True, slots=True)
class Cells:
    """The host cells a guest was given (*chosen*) and the socket of every cell of the host."""

    chosen: frozenset[int]
    sockets: tuple[tuple[int, int | None], ...] = ()

    def nodes_on_same_sockets(self) -> frozenset[int]:
        """Cells on a socket that hosts a chosen cell; none when any socket is unknown."""
        if any(socket is None for _cell, socket in self.sockets):
            return frozenset()
        mine = {socket for cell, socket in self.sockets if cell in self.chosen}
        return frozenset(cell for cell, socket in self.sockets if socket in mine)


Affinity = Callable[[list[Pool], Request, Cells], list[Pool]]


def near_or_unknown(pools: list[Pool], _request: Request, cells: Cells) -> list[Pool]:
    """Newton: pools on a chosen cell or on an unknown one, in pool order."""
    return [p for p in pools if p.numa_node is None or p.numa_node in cells.chosen]


def by_policy(pools: list[Pool], request: Request, cells: Cells) -> list[Pool]:
    """Today: the nearest pools that suffice, as far away as the request's policy lets them be."""
    near = [p for p in pools if p.numa_node in cells.chosen]
    if request.policy == "required" or _enough(near, request):
        return near
    if request.policy == "socket":
        nodes = cells.nodes_on_same_sockets()
        return [p for p in pools if p.numa_node in nodes]
    acceptable = near_or_unknown(pools, request, cells)
    if request.policy != "preferred" or _enough(acceptable, request):
        return acceptable
    return acceptable + [p for p in pools if p not in acceptable]


def _enough(pools: list[Pool], request: Request) -> bool:
    return sum(pool.count for pool in pools) >= request.count
