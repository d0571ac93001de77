"""What is asked: every kind of request there is, drawn at random from a seed."""

import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks import requests
from benchmarks.fleet import FleetPlan
from scheduler import objects

#: How many servers one request asks for: one to a thousand.
COUNTS: Final = (1, 1, 1, 2, 5, 20, 50, 100, 200, 300, 500, 1000)
#: The same where it is about many decisions in little time.
LARGE_COUNTS: Final = (1, 2, 20, 100, 300, 500, 1000, 1000, 1000)
#: Versions of the method: (version, whether it takes the object, and what it then asks for).
FORMS: Final[Sequence[tuple[str, Mapping[str, Any] | None]]] = (
    ("4.5", {"return_objects": True, "return_alternates": True}),
    ("4.5", {"return_objects": True, "return_alternates": True}),
    ("4.5", {"return_objects": True, "return_alternates": False}),
    ("4.4", {}),
    ("4.0", None),
)
_WEIGHTS: Final = {
    "plain": 16,
    "flavors": 16,
    "distinct": 6,
    "impossible": 2,
    "anti-affinity": 2,
    "affinity": 1,
    "soft-anti-affinity": 2,
    "soft-affinity": 1,
    "zone-and-specs": 3,
    "json-query": 3,
    "pinned": 1,
    "devices": 1,
    "bad-query": 1,
    "forced": 1,
    "ignored": 1,
    "elsewhere": 1,
    "capabilities": 1,
}
#: Kinds that are asked for in large numbers, too.
BULK: Final = frozenset({"plain", "flavors", "soft-anti-affinity", "zone-and-specs"})
#: Servers of a group that come at once: there are quotas of its members.
MOST_OF_A_GROUP: Final = 100
SMALL: Final = {"memory_mb": 256, "root_gb": 1, "vcpus": 1, "name": "m1.nano"}


@dataclass(frozen=True)
class Demand:
    """One request: its id, its servers, and the version of the method it is asked with."""

    kind: str
    request_id: str
    uuids: tuple[str, ...]
    spec: objects.RequestSpec
    version: str
    returns: Mapping[str, Any] | None

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of ``select_destinations``; objects as they are."""
        if self.returns is None:
            return {
                "request_spec": self.spec.to_legacy_request_spec_dict(),
                "filter_properties": self.spec.to_legacy_filter_properties_dict(),
            }
        return {"spec_obj": self.spec, "instance_uuids": list(self.uuids), **self.returns}


class Demands:
    """Draws requests; *hosts* tells which there are, *servers* which live, at any moment.

    *counts* are the numbers of servers that a request of many may ask for.
    """

    def __init__(
        self,
        plan: FleetPlan,
        rng: random.Random,
        hosts: Callable[[], Sequence[str]],
        servers: Callable[[], Sequence[str]],
        counts: Sequence[int] = COUNTS,
    ) -> None:
        self._plan = plan
        self._counts = counts
        self._rng = rng
        self._hosts = hosts
        self._servers = servers
        self._number = 0
        self._names = list(_WEIGHTS)
        self._shares = list(_WEIGHTS.values())

    def next(self) -> Demand:
        """Another request, for servers that nobody asked for before."""
        self._number += 1
        kind = self._rng.choices(self._names, self._shares)[0]
        count = self._rng.choice(self._counts) if kind in BULK else self._rng.choice((1, 1, 1, 2))
        spec = self._spec(kind)
        if spec.instance_group is not None:
            count = min(count, MOST_OF_A_GROUP)
        version, returns = self._rng.choice(FORMS)
        if returns is None:  # the form of dicts names no servers but in its properties
            count = 1
        uuids = tuple(self._uuid() for _number in range(count))
        spec.num_instances, spec.instance_uuid = count, uuids[0]
        if kind in BULK:
            spec.flavor = spec.flavor.copy()
            for name, value in SMALL.items():
                setattr(spec.flavor, name, value)
        return Demand(kind, f"req-{self._uuid()}", uuids, spec, version, returns)

    def _uuid(self) -> str:
        return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))

    def _spec(self, kind: str) -> objects.RequestSpec:
        if kind in requests.KINDS:
            return requests.KINDS[kind](self._number, self._plan)
        fields: dict[str, Callable[[], dict[str, Any]]] = {
            "bad-query": lambda: {"scheduler_hints": {"query": ['["no", "such", 1']}},
            "forced": lambda: {"force_hosts": [self._host()]},
            "ignored": lambda: {"ignore_hosts": [self._host() for _number in range(30)]},
            "elsewhere": lambda: {"scheduler_hints": {"different_host": self._some_servers()}},
            "capabilities": lambda: {
                "flavor": {"extra_specs": {"capabilities:cpu_info:vendor": "Intel"}}
            },
        }
        return requests.a_request(self._number, **fields[kind]())

    def _host(self) -> str:
        return self._rng.choice(self._hosts())

    def _some_servers(self) -> list[str]:
        there = self._servers()
        return self._rng.sample(there, min(4, len(there)))
