"""What is still there at the end that was not there at the beginning."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

import psutil

MIB = 1024 * 1024


@dataclass(frozen=True)
class Look:
    """Files, threads and memory of this process and of those looked at; the children there are."""

    fds: int
    threads: int
    rss_mib: float
    peak_rss_mib: float
    children: frozenset[int] = field(default_factory=frozenset)


def look(pids: Iterable[int] = ()) -> Look:
    """Sums over this process and *pids*; the peak is the highest of any one of them."""
    processes = [psutil.Process(pid) for pid in (os.getpid(), *pids)]
    return Look(
        fds=sum(each.num_fds() for each in processes),
        threads=sum(each.num_threads() for each in processes),
        rss_mib=sum(each.memory_info().rss for each in processes) / MIB,
        peak_rss_mib=max(_peak_rss_mib(each.pid) for each in processes),
        children=frozenset(each.pid for each in psutil.Process().children(recursive=True)),
    )


def grown(before: Look, after: Look) -> dict[str, float]:
    """What has grown between warm-up and the last round."""
    return {
        "fds": after.fds - before.fds,
        "threads": after.threads - before.threads,
        "rss_mib": round(after.rss_mib - before.rss_mib, 1),
    }


def left_behind(start: Look) -> dict[str, float]:
    """Processes that were started since *start* and are still there."""
    return {"processes": len(look().children - start.children)}


def _peak_rss_mib(pid: int) -> float:
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0
