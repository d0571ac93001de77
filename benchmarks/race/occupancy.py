"""Replaying the journal: what is on, or promised to, each host at every moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.race.journal import Line


@dataclass(frozen=True, slots=True)
class Step:
    """From *at* on, *host* has *memory_mb* more (or less) in use because of *uuid*."""

    at: float
    host: str
    memory_mb: int
    uuid: str
    line: Line


def steps(lines: Sequence[Line]) -> Iterator[Step]:
    """Every change of what hosts have in use, in order.

    A server counts on the host it is on, and on the one it is claimed for while it is on none,
    until it is deleted or in error.  On one host it counts once.
    """
    claims: dict[str, str] = {}
    servers: dict[str, tuple[str | None, str | None]] = {}
    before: dict[str, frozenset[str]] = {}
    for line in lines:
        if line.kind == "claim":
            claims[line.uuid] = str(line.host)
        elif line.kind == "end":
            claims.pop(line.uuid, None)
        else:
            servers[line.uuid] = line.host, line.state
        now = _hosts(claims.get(line.uuid), *servers.get(line.uuid, (None, None)))
        earlier = before.get(line.uuid, frozenset())
        before[line.uuid] = now
        for host in earlier - now:
            yield Step(line.at, host, -line.memory_mb, line.uuid, line)
        for host in now - earlier:
            yield Step(line.at, host, line.memory_mb, line.uuid, line)


def _hosts(claimed: str | None, host: str | None, state: str | None) -> frozenset[str]:
    if state == "deleted":
        return frozenset()
    if host is not None:
        return frozenset((host,))
    return frozenset((claimed,)) if claimed and state != "error" else frozenset()


def excesses(lines: Sequence[Line], host_mb: int) -> list[str]:
    """Every moment at which a host had more in use than it has."""
    used: Counter[str] = Counter()
    found = []
    for step in steps(lines):
        used[step.host] += step.memory_mb
        if step.memory_mb > 0 and used[step.host] > host_mb:
            found.append(
                f"{step.host}: {used[step.host]} of {host_mb} MiB at {step.at:.3f} by {step.uuid} "
                f"(journal line {step.line.id})"
            )
    return found


class Slots:
    """For servers of one size: how many more the fleet could have held, at every moment."""

    def __init__(
        self,
        lines: Sequence[Line],
        freed_at: Mapping[str, float],
        seen_at: Mapping[int, float],
        hosts: Sequence[str],
        host_mb: int,
        size_mb: int,
    ) -> None:
        self.times: list[float] = [float("-inf")]
        self.slots: list[int] = [len(hosts) * (host_mb // size_mb)]
        free = dict.fromkeys(hosts, host_mb)
        for at, host, memory_mb in sorted(_visible(lines, freed_at, seen_at)):
            before, free[host] = free[host] // size_mb, free[host] - memory_mb
            self.times.append(at)
            self.slots.append(self.slots[-1] + max(free[host] // size_mb, 0) - max(before, 0))

    def least(self, first: int, last: int) -> int:
        """The least number between two positions in ``times``, both included."""
        return min(self.slots[first : last + 1])


def _visible(
    lines: Sequence[Line], freed_at: Mapping[str, float], seen_at: Mapping[int, float]
) -> Iterator[tuple[float, str, int]]:
    """Steps at the time at which the memory was taken, or was free for everybody to see.

    That is by server, where the host's report tells of it, or by line of the journal.
    """
    for step in steps(lines):
        at = step.at
        if step.memory_mb < 0:
            ended = step.line.state in ("deleted", "error")
            seen = freed_at.get(step.uuid) if ended else seen_at.get(step.line.id)
            at = max(at, seen or at)
        yield at, step.host, step.memory_mb
