"""What was promised against what happened, from the journal and the callers' requests alone."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.race.callers import Request, hosts_of
from tests.race.journal import Line
from tests.race.plan import SIZES_MB, Plan

#: Most time between the line of a change in the journal and its commit, which others see.
COMMIT_SECONDS: Final = 2.0


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
        hosts: Sequence[str],
        host_mb: int,
        size_mb: int,
    ) -> None:
        self.times: list[float] = [float("-inf")]
        self.slots: list[int] = [len(hosts) * (host_mb // size_mb)]
        free = dict.fromkeys(hosts, host_mb)
        for at, host, memory_mb in sorted(_visible(lines, freed_at)):
            before, free[host] = free[host] // size_mb, free[host] - memory_mb
            self.times.append(at)
            self.slots.append(self.slots[-1] + max(free[host] // size_mb, 0) - max(before, 0))

    def least(self, first: int, last: int) -> int:
        """The least number between two positions in ``times``, both included."""
        return min(self.slots[first : last + 1])


def _visible(
    lines: Sequence[Line], freed_at: Mapping[str, float]
) -> Iterator[tuple[float, str, int]]:
    """Steps at the time at which the memory was taken, or was free for everybody to see.

    That is by server, where the host's report tells of it, or soon after the end of a claim.
    """
    for step in steps(lines):
        at = step.at
        if step.memory_mb < 0:
            is_reported = step.line.state in ("deleted", "error") and step.uuid in freed_at
            at = max(at, freed_at[step.uuid]) if is_reported else at + COMMIT_SECONDS
        yield at, step.host, step.memory_mb


def judge(
    plan: Plan,
    requests: Sequence[Request],
    lines: Sequence[Line],
    freed_at: Mapping[str, float],
    end_state: Mapping[str, Sequence[Any]],
) -> dict[str, list[str]]:
    """Everything that broke a promise, in words, by the promise."""
    with_claims = plan.claims == "database"
    return {
        f"moments with a host over its memory, of {len(lines)} changes": excesses(
            lines, plan.host_mb
        ),
        "requests without an end, or with another error": _errors(requests),
        "different answers to the same request": [
            f"{each.id}: {each.failure or hosts_of(each.answer)}, then {each.contradictions}"
            for each in requests
            if each.contradictions
        ],
        "refusals while there was room": list(_unjust_refusals(plan, requests, lines, freed_at)),
        "claims not accounted for": _claims_at_odds(plan, requests, lines, end_state)
        if with_claims
        else [],
        "hosts that report something else than is on them": _reports_at_odds(lines, end_state),
    }


def _errors(requests: Sequence[Request]) -> list[str]:
    expected = (None, "NoValidHost", "timeout")
    return [
        f"{each.id}: {each.failure}"
        for each in requests
        if each.failure not in expected or not each.ended_at
    ]


def _unjust_refusals(
    plan: Plan, requests: Sequence[Request], lines: Sequence[Line], freed_at: Mapping[str, float]
) -> list[str]:
    hosts = [f"cmp{number}" for number in range(1, plan.hosts + 1)]
    found = []
    for size_mb in SIZES_MB:
        refused = [
            each for each in requests if each.failure == "NoValidHost" and each.memory_mb == size_mb
        ]
        slots = Slots(lines, freed_at, hosts, plan.host_mb, size_mb)
        for each in refused:
            first = bisect_right(slots.times, each.sent_at) - 1
            last = bisect_right(slots.times, each.ended_at) - 1
            least, wanted = slots.least(first, last), len(each.uuids)
            if least >= wanted:
                found.append(
                    f"{each.id}: {wanted} of {size_mb} MiB, there was always room for {least} "
                    f"({each.sent_at:.3f} to {each.ended_at:.3f}, {each.tries} tries)"
                )
    return found


def _claims_at_odds(
    plan: Plan,
    requests: Sequence[Request],
    lines: Sequence[Line],
    end_state: Mapping[str, Sequence[Any]],
) -> list[str]:
    made: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        if line.kind == "claim":
            request_id = str(line.request).split("/")[0].removeprefix("req-")
            made.setdefault((request_id, line.uuid), []).append(str(line.host))
    found = [f"{uuid}: still claimed on {host}" for uuid, host in end_state["claims"]]
    known = set()
    for request in requests:
        hosts: Sequence[str | None] = hosts_of(request.answer) or [None] * len(request.uuids)
        for uuid, host in zip(request.uuids, hosts, strict=True):
            known.add((request.id, uuid))
            booked = made.get((request.id, uuid), [])
            if plan.break_seconds:  # those that went back are written again
                booked = list(dict.fromkeys(booked))
            if host is not None and booked != [host]:
                found.append(f"{uuid}: answered {host}, claimed {booked}")
            if request.failure == "NoValidHost" and booked:
                found.append(f"{uuid}: refused, claimed {booked}")
    # Alternates are claimed under an id made of the server's.
    strays = [each for each in made.keys() - known if each[0] != each[1]]
    return found + [f"{uuid}: claimed for a request {one} unheard of" for one, uuid in strays]


def _reports_at_odds(lines: Sequence[Line], end_state: Mapping[str, Sequence[Any]]) -> list[str]:
    """The journal must lead to what the tables say, and hosts must report what is on them."""
    sizes = {line.uuid: line.memory_mb for line in lines}
    on_host: dict[str, int] = {}
    for uuid, host in end_state["servers"]:
        on_host[host] = on_host.get(host, 0) + sizes[uuid]
    replayed: dict[str, int] = {}
    for step in steps(lines):
        replayed[step.host] = replayed.get(step.host, 0) + step.memory_mb
    return [
        f"{host}: {used} MiB reported, {on_host.get(host, 0)} there, {replayed.get(host, 0)} told"
        for host, _memory_mb, used in end_state["reports"]
        if not used == on_host.get(host, 0) == replayed.get(host, 0)
    ]
