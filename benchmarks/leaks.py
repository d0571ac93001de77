"""What is still there at the end that was not there at the beginning."""

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field

import psutil

MIB = 1024 * 1024


@dataclass(frozen=True)
class Look:
    """Files, threads and memory of this process and of those looked at; its children."""

    fds: int
    threads: int
    rss_mib: float
    peak_rss_mib: float
    children: frozenset[int] = field(default_factory=frozenset)


def look(pids: Iterable[int] = ()) -> Look:
    """Sums over this process and *pids*; the peak is the highest of any one of them."""
    processes = [psutil.Process(pid) for pid in {os.getpid(), *pids}]
    return Look(
        fds=sum(each.num_fds() for each in processes),
        threads=sum(each.num_threads() for each in processes),
        rss_mib=sum(each.memory_info().rss for each in processes) / MIB,
        peak_rss_mib=max(memory_mib(each.pid)["peak_mib"] for each in processes),
        children=frozenset(each.pid for each in psutil.Process().children()),
    )


def grown(before: Look, after: Look) -> dict[str, float]:
    """What has grown between two looks."""
    return {
        "fds": after.fds - before.fds,
        "threads": after.threads - before.threads,
        "rss_mib": round(after.rss_mib - before.rss_mib, 1),
    }


def left_behind(start: Look) -> dict[str, float]:
    """Processes that were started here since *start* and are still there.

    Servers that ran before start and end processes of their own all the time.
    """
    return {"processes": len(look().children - start.children)}


def family(pid: int) -> list[int]:
    """The process and its descendants: a daemon on threads works in a child of its own."""
    return [pid, *(each.pid for each in psutil.Process(pid).children(recursive=True))]


def cpu_seconds(pids: Iterable[int]) -> float:
    """Processor time that those of these processes which are still there have taken so far."""
    seconds = 0.0
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):  # a server's helper that has ended
            times = psutil.Process(pid).cpu_times()
            seconds += times.user + times.system
    return seconds


def memory_mib(pid: int) -> dict[str, float]:
    """Resident memory of a process now (``rss_mib``) and at its highest (``peak_mib``)."""
    names = {"VmRSS:": "rss_mib", "VmHWM:": "peak_mib"}
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        words = [line.split() for line in status]
    return {names[each[0]]: int(each[1]) / 1024 for each in words if each and each[0] in names}
