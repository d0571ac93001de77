"""Measures of how well a fleet is used, by the names of the literature.

Allocated share, packing density (on hosts that are not empty) and empty hosts; stranding, by
filling holes with the workload's own mix until nothing fits (inflation, as in Protean); fragment
rate (Weng et al., Beware of Fragmentation, ATC 2023).  Capacity is what hosts have, times ratio.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np

from scheduler.hosts import capacity
from scheduler.hosts.candidates import Candidates, Scope
from scheduler.hosts.table import HostTable

CORES, MEMORY, DISK = RESOURCES = ("cores", "memory", "disk")
#: Servers of the mix that are tried on each host to fill its holes.
_MOST_TRIED: Final = 400
#: Flavors of a mix, the most frequent ones.
_MOST_FLAVORS: Final = 32

Size = tuple[int, int, int]
"""Cores, MiB of memory, MiB of disk."""
Mix = Mapping[Size, int]
"""Times that each size is asked for."""


@dataclass(frozen=True)
class Room:
    """By resource the capacity of each host and what is free of it."""

    capacity: np.ndarray
    free: np.ndarray
    is_empty: np.ndarray

    @classmethod
    def from_table(cls, table: HostTable) -> Self:
        """The hosts that have a service which is neither disabled nor forced down."""
        rows = table.order
        off = table.column("service_disabled")[rows] | table.column("service_forced_down")[rows]
        room = cls.from_rows(table, rows[~off])
        return replace(room, free=np.maximum(room.free, 0.0))

    @classmethod
    def from_rows(cls, table: HostTable, rows: np.ndarray) -> Self:
        """The hosts of *rows*; below zero is free where more is in use than there is."""
        hosts = Candidates(Scope(table, 0.0, 0.0), rows)
        found = capacity.resources(hosts)
        several = [found[name] for name in (capacity.VCPUS, capacity.MEMORY, capacity.DISK)]
        whole = np.array([total * ratio for total, _free, ratio in several])
        used = np.array([total - free for total, free, _ratio in several])
        return cls(whole, whole - used, hosts.num_instances == 0)

    def shares(self, amounts: np.ndarray, where: np.ndarray | None = None) -> dict[str, float]:
        """By resource the share that *amounts* are of the capacity, of the hosts *where*."""
        chosen = slice(None) if where is None else where
        whole, parts = self.capacity[:, chosen].sum(axis=1), amounts[:, chosen].sum(axis=1)
        return {
            name: round(float(part / all_of), 6) if all_of else 0.0
            for name, part, all_of in zip(RESOURCES, parts, whole, strict=True)
        }


def occupancy(room: Room) -> dict[str, object]:
    """Allocated share, packing density and empty hosts."""
    used = room.capacity - room.free
    hosts = len(room.is_empty)
    empty = int(room.is_empty.sum())
    return {
        "allocated_share": room.shares(used),
        "packing_density": room.shares(used, ~room.is_empty),
        "empty_hosts": empty,
        "empty_host_share": round(empty / hosts, 6) if hosts else 0.0,
    }


def stranding(room: Room, mix: Mix, seed: int) -> dict[str, float]:
    """By resource the share of the capacity that is left when no server of the *mix* fits.

    Each host is filled with servers drawn from it, the same for all.
    """
    sizes, weights = _sorted(mix)
    free = room.free.copy()
    if len(sizes):
        draws = random.Random(seed).choices(range(len(sizes)), weights, k=_MOST_TRIED)
        for number in draws:
            _fill(free, sizes[number], once=True)
        for size in sizes[np.argsort(-sizes.max(axis=1), kind="stable")]:
            _fill(free, size, once=False)
    return room.shares(free)


def _fill(free: np.ndarray, size: np.ndarray, *, once: bool) -> None:
    """Put a server of that *size* on each host that has room, or as many as go there."""
    wanted = size > 0
    if not wanted.any():
        return
    fitting = np.floor((free[wanted] / size[wanted, None]).min(axis=0))
    free -= size[:, None] * (np.minimum(fitting, 1.0) if once else fitting)


def fragment_rate(room: Room, mix: Mix) -> dict[str, float]:
    """By resource the share of what is free on hosts where the next server does not fit.

    It is the mean over the sizes of the *mix*, by how often they are asked for.
    """
    sizes, weights = _sorted(mix)
    whole = room.free.sum(axis=1)
    lost = np.zeros(len(RESOURCES))
    for size, weight in zip(sizes, weights, strict=True):
        fits = (room.free >= size[:, None]).all(axis=0)
        lost += weight * room.free[:, ~fits].sum(axis=1)
    total = sum(weights)
    return {
        name: round(float(part / all_of / total), 6) if total and all_of else 0.0
        for name, part, all_of in zip(RESOURCES, lost, whole, strict=True)
    }


def _sorted(mix: Mix) -> tuple[np.ndarray, Sequence[int]]:
    """The most frequent sizes, in an order that depends on nothing else, and how frequent."""
    chosen = sorted(mix.items(), key=lambda each: (-each[1], each[0]))[:_MOST_FLAVORS]
    sizes = np.array([size for size, _times in chosen], dtype=np.float64)
    return sizes.reshape(-1, len(RESOURCES)), [times for _size, times in chosen]
