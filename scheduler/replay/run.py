"""One workload on one fleet, in virtual time: arrivals, ends, samples, and what was refused."""

import heapq
import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from scheduler import objects
from scheduler.explain.answer import to_dict
from scheduler.hosts.reservations import Reservation
from scheduler.replay import measures
from scheduler.replay.measures import Room, Size
from scheduler.replay.virtual_fleet import Outcome, VirtualFleet
from scheduler.replay.workload import Arrival, HostEvent

HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
#: A server counts among the I/O operations of its host for so long.
BUILD_SECONDS: Final = 120.0
#: So many refusals are explained.
WORST: Final = 5
#: Numbers of requests and servers of each flavor.
_COUNTED: Final = ("requests", "servers", "requests_refused", "servers_refused")


class Run:
    """A fleet with the servers of a workload, as far as it has been played.

    Seconds count from the first arrival; *sample_seconds* lie between two samples of the
    measures, *warm_up_seconds* pass before anything counts.
    """

    def __init__(
        self,
        fleet: VirtualFleet,
        *,
        seed: int = 0,
        sample_seconds: float = HOUR,
        warm_up_seconds: float = 0.0,
        events: Iterable[HostEvent] = (),
    ) -> None:
        self.fleet = fleet
        self._events = deque(events)
        self.series: list[dict[str, Any]] = []
        #: By flavor, from the end of the warm-up on.
        self._counts: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(_COUNTED, 0))
        self._ranks: dict[str, tuple[Size, str]] = {}
        #: The worst refusals, each behind its rank.
        self._worst: list[tuple[tuple[float, float], dict[str, Any]]] = []
        self.decisions = 0
        self._seed = seed
        self._begin = fleet.clock()
        self._sample_seconds = sample_seconds
        self._warm_up_seconds = warm_up_seconds
        self._sampled_at = 0.0
        self._ends: list[tuple[float, int, Reservation]] = []
        self._builds: list[tuple[float, Sequence[Reservation]]] = []
        self._placed = 0
        self._named = 0
        self._groups: dict[str, objects.InstanceGroup] = {}
        self._mixes: dict[int, Counter[Size]] = {}
        self._first: float | None = None

    def go_to(self, at: float) -> None:
        """Let time pass until *at*, in seconds of the workload: servers are built, and end."""
        if self._first is None:
            self._first = at
        now = at - self._first
        while self._sampled_at + self._sample_seconds <= now:
            self._sampled_at += self._sample_seconds
            self._pass(self._sampled_at)
            self.sample()
        self._pass(now)

    def _pass(self, now: float) -> None:
        self.fleet.clock.advance(self._begin + now)
        while self._events and self._events[0].at - (self._first or 0.0) <= now:
            event = self._events.popleft()
            if event.host in self.fleet.table.services:
                self.fleet.set_disabled(event.host, disabled=event.is_off)
        while self._builds and self._builds[0][0] <= now:
            self.fleet.finish_builds(self._builds.pop(0)[1])
        while self._ends and self._ends[0][0] <= now:
            self.fleet.remove([heapq.heappop(self._ends)[2]])

    @property
    def _now(self) -> float:
        return self.fleet.clock() - self._begin

    def ask(self, arrival: Arrival) -> Outcome:
        spec, uuids = self._request(arrival)
        self.decisions += 1
        outcome = self.fleet.place(spec, uuids, seed=self._seed + self.decisions)
        now = self._now
        self._mixes.setdefault(int(now // DAY), Counter())[_size(arrival)] += arrival.count
        if now >= self._warm_up_seconds:
            count = self._counts[arrival.flavor_name]
            self._ranks[arrival.flavor_name] = _size(arrival), arrival.flavor_name
            count["requests"] += 1
            count["servers"] += arrival.count
            if outcome.is_refused:
                count["requests_refused"] += 1
                count["servers_refused"] += arrival.count
                self._note_refusal(arrival, spec, uuids)
        if not outcome.is_refused:
            self._keep(arrival, outcome, now)
        return outcome

    def total(self, name: str) -> int:
        """The sum over all flavors of one of the numbers that are counted."""
        return sum(each[name] for each in self._counts.values())

    def _request(self, arrival: Arrival) -> tuple[objects.RequestSpec, Sequence[str]]:
        spec, uuids = arrival.request(), arrival.uuids
        if not uuids:
            first, self._named = self._named + 1, self._named + arrival.count
            uuids = [_uuid(number) for number in range(first, self._named + 1)]
        if arrival.group and arrival.spec is None:
            policy, _colon, name = arrival.group.partition(":")
            spec.instance_group = self._group(policy, name, uuids)
        elif arrival.uuids and spec.instance_group is not None:  # others are where they are here
            spec = spec.copy()
            others = [each for each in spec.instance_group.members or () if each not in uuids]
            spec.instance_group.hosts = self._homes(others)
        return spec, uuids

    def _homes(self, members: Iterable[str]) -> list[str]:
        homes = self.fleet.table.host_of_instance
        return list(dict.fromkeys(homes[each] for each in members if each in homes))

    def _group(self, policy: str, name: str, uuids: Sequence[str]) -> objects.InstanceGroup:
        """The group as the sender of a request knows it: the new *uuids* are members already."""
        known = self._groups.get(f"{policy}:{name}")
        if known is None:
            uuid = _uuid(len(self._groups) + 1, "f")
            known = objects.InstanceGroup(uuid=uuid, name=name, policy=policy, policies=[policy])
            known.members = []
            self._groups[f"{policy}:{name}"] = known
        homes = self.fleet.table.host_of_instance
        known.members = [*(each for each in known.members if each in homes), *uuids]
        known.hosts = self._homes(known.members)
        return known

    def _keep(self, arrival: Arrival, outcome: Outcome, now: float) -> None:
        self._builds.append((now + BUILD_SECONDS, outcome.servers))
        for server, lifetime in zip(outcome.servers, arrival.lifetimes, strict=True):
            if lifetime < math.inf:
                self._placed += 1
                heapq.heappush(self._ends, (now + lifetime, self._placed, server))

    def _note_refusal(
        self, arrival: Arrival, spec: objects.RequestSpec, uuids: Sequence[str]
    ) -> None:
        """Explain the refusal if it is among the worst: decided again, with the reasons."""
        rank = (-arrival.count * _size(arrival)[1], self._now)
        if len(self._worst) == WORST and rank >= self._worst[-1][0]:
            return
        seed = self._seed + self.decisions
        again = self.fleet.place(spec, uuids, seed=seed, wants_detail=True)
        self.fleet.remove(again.servers)
        found = {
            "request": arrival.name,
            "at": round(self._now, 3),
            "flavor": arrival.flavor_name,
            "servers": arrival.count,
            "because": to_dict(again.record)["cause"],
        }
        self._worst.append((rank, found))
        self._worst.sort(key=lambda each: each[0])
        del self._worst[WORST:]

    def explain_again(self, outcome: Outcome) -> str:
        """The reason for an *outcome* that was the latest one."""
        record, spec = outcome.record, outcome.record.request.copy()
        spec.num_instances = count = record.num_instances
        uuids = [_uuid(number, "e") for number in range(count)]  # or servers would be replaced
        if spec.instance_group is not None:
            anew = dict(zip(record.instance_uuids, uuids, strict=False))
            spec.instance_group.members = [
                anew.get(m, m) for m in spec.instance_group.members or ()
            ]
        with self.fleet.reservations.without(outcome.servers):
            again = self.fleet.place(spec, uuids, seed=record.seed, wants_detail=True)
            self.fleet.remove(again.servers)
        return str(to_dict(again.record)["cause"])

    def sample(self) -> dict[str, Any]:
        """The measures as of now, which are added to the series."""
        room, now = Room.from_table(self.fleet.table), self._now
        day = int(now // DAY)
        mix = self._mixes.get(day) or self._mixes.get(day - 1) or Counter()
        found = {
            "at": round(now, 3),
            "servers": len(self.fleet.table.host_of_instance),
            "hosts": len(room.is_empty),
            **measures.occupancy(room),
            "stranded_share": measures.stranding(room, mix, self._seed),
            "fragment_rate": measures.fragment_rate(room, mix),
        }
        self.series.append(found)
        return found

    def result(self) -> dict[str, Any]:
        end = self.sample()
        counted = [each for each in self.series if each["at"] >= self._warm_up_seconds] or [end]
        return {
            **{name: self.total(name) for name in ("requests", "servers", "requests_refused")},
            "failure_rate_by_flavor": {
                name: {
                    **count,
                    "failure_rate": round(count["servers_refused"] / count["servers"], 6),
                }
                for name, count in sorted(self._counts.items(), key=lambda its: self._ranks[its[0]])
            },
            "mean": _mean(counted),
            "end": end,
            "worst_refusals": [found for _rank, found in self._worst],
            "series": self.series,
        }


def _uuid(number: int, kind: str = "8") -> str:
    return f"00000000-0000-4000-{kind}000-{number:012x}"


def _size(arrival: Arrival) -> Size:
    """The size that was asked for; as in a decision, what the flavor lacks is 0."""
    flavor = arrival.flavor
    disk_gb = (flavor.root_gb or 0) + (flavor.ephemeral_gb or 0)
    return flavor.vcpus or 0, flavor.memory_mb or 0, disk_gb * 1024


def _mean(samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The mean of every number of *samples*, but for their times."""
    found: dict[str, Any] = {}
    for name, value in samples[0].items():
        several = [each[name] for each in samples]
        if isinstance(value, dict):
            found[name] = _mean(several)
        elif name != "at":
            found[name] = round(math.fsum(several) / len(several), 6)
    return found


def play(run: Run, arrivals: Iterable[Arrival], most_refused: int | None = None) -> bool:
    """Play all *arrivals*; False as soon as more than *most_refused* were refused."""
    for arrival in arrivals:
        run.go_to(arrival.at)
        run.ask(arrival)
        if most_refused is not None and run.total("requests_refused") > most_refused:
            return False
    return True


def compare(runs: Mapping[str, Run], arrivals: Iterable[Arrival]) -> list[dict[str, Any]]:
    """Play *arrivals* in all *runs*, by configuration, and compare each with the first one.

    Where they part for the first time, both decisions are explained.
    """
    (first, run), *others = runs.items()
    differences: list[dict[str, Any]] = [
        {
            "between": [first, name],
            "requests": 0,
            "elsewhere": 0,
            "refused_only_by": {first: 0, name: 0},
            "first": None,
        }
        for name, _run in others
    ]
    for arrival in arrivals:
        run.go_to(arrival.at)
        outcome = run.ask(arrival)
        for (name, second), found in zip(others, differences, strict=True):
            second.go_to(arrival.at)
            other = second.ask(arrival)
            found["requests"] += 1
            if outcome.hosts == other.hosts:
                continue
            found["elsewhere"] += not (outcome.is_refused or other.is_refused)
            found["refused_only_by"][first] += outcome.is_refused
            found["refused_only_by"][name] += other.is_refused
            found["first"] = found["first"] or {
                "request": arrival.name,
                "at": round(arrival.at, 3),
                "flavor": arrival.flavor_name,
                "servers": arrival.count,
                "why": {first: run.explain_again(outcome), name: second.explain_again(other)},
            }
    return differences
