"""Requests of server groups: where they go, and how many hosts that is asked about."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from scheduler import objects
from scheduler.filters.affinity_filter import (
    ServerGroupAffinityFilter,
    ServerGroupAntiAffinityFilter,
)
from scheduler.filters.retry_filter import RetryFilter
from scheduler.hosts.books import TrackedInstance
from scheduler.weights.affinity import (
    ServerGroupSoftAffinityWeigher,
    ServerGroupSoftAntiAffinityWeigher,
)
from tests.builders import NOW, a_conf, a_host, a_request
from tests.unit.standing.test_same_as_from_scratch import World

MEMBERS = [f"cccccccc-0000-4000-a000-{n:012}" for n in range(6)]
POLICIES = ["affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity"]
CHAIN = [
    "RamFilter",
    "RetryFilter",
    "SameHostFilter",
    "DifferentHostFilter",
    "ServerGroupAntiAffinityFilter",
    "ServerGroupAffinityFilter",
    "IoOpsFilter",
]
#: Multipliers at which floats are rounded, and the opposite policy.
OPTIONS = {
    "current": {},
    "uneven": {"soft_anti_affinity_weight_multiplier": 0.3, "soft_affinity_weight_multiplier": 0.7},
    "newton": {"soft_anti_affinity_weight_multiplier": -0.1},
}
_sizes = st.fixed_dictionaries(
    {
        "free_ram_mb": st.sampled_from([0, 1024, 3000, 5000, 5000, 7001]),
        "free_disk_mb": st.sampled_from([20_000, 20_000, 33_333, 70_001]),
        "vcpus_used": st.integers(0, 3),
        "num_io_ops": st.sampled_from([0, 0, 1, 3, 9]),
    }
)
_requests = st.fixed_dictionaries(
    {
        "group": st.fixed_dictionaries(
            {
                "policy": st.sampled_from(POLICIES),
                "members": st.lists(st.sampled_from(MEMBERS), max_size=5),
                "hosts": st.lists(st.integers(0, 23).map(lambda n: f"h{n}"), max_size=4),
                "rules": st.sampled_from([{}, {}, {"max_server_per_host": "2"}]),
            }
        ),
        "hints": st.sampled_from(
            [None, None, None, {"different_host": MEMBERS[:2]}, {"same_host": MEMBERS[:3]}]
        ),
        "tried": st.sampled_from([None, None, [("h0", "n"), ("h1", "n")]]),
    }
)


def worlds_of(hosts, homes, name="current", factors=None):
    """Twice the same fleet: one keeps results, the other does not."""
    conf = a_conf(enabled_filters=CHAIN, **OPTIONS[name])
    conf.set_override("semantics", "newton" if name == "newton" else "current", group="scheduler")
    worlds = [World(conf, keeps_results=keeps) for keeps in (True, False)]
    for world in worlds:
        for number, sizes in enumerate(hosts):
            a_host(f"h{number}", "n", table=world.table, node_id=number, **sizes)
        for uuid, home in zip(MEMBERS, homes, strict=False):
            host = f"h{home % len(hosts)}"
            world.table.put_instance(host, uuid, TrackedInstance(uuid, host))
        aggregate = objects.Aggregate(id=9, uuid="u9", name="a9", metadata=factors or {})
        world.table.set_aggregates({"h1": (aggregate,)})
    return worlds


@pytest.mark.parametrize("name", OPTIONS)
@settings(
    max_examples=40,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(
    hosts=st.lists(_sizes, min_size=1, max_size=24),
    homes=st.lists(st.integers(0, 23), max_size=6),
    factors=st.sampled_from([{}, {}, {}, {"soft_anti_affinity_weight_multiplier": "2"}]),
    requests=st.lists(_requests, min_size=1, max_size=3),
    alternates=st.sampled_from([0, 0, 1, 3, 9, 30]),
    count=st.sampled_from([1, 1, 1, 2]),
)
def test_servers_of_groups_go_where_they_would_go_anew(
    name, hosts, homes, factors, requests, alternates, count
):
    worlds = worlds_of(hosts, homes, name, factors)
    for turn in range(2 * len(requests)):
        request = a_request(flavor={"memory_mb": 512}, **requests[turn % len(requests)])
        uuids = [f"bbbbbbbb-0000-4000-a000-{turn * 1000 + n:012}" for n in range(count)]
        asked = NOW, turn, uuids, count, alternates
        kept, anew = (world.decide(request.copy(), *asked) for world in worlds)
        assert kept == anew


PARTS = {
    "affinity": (ServerGroupAffinityFilter, "conditions"),
    "anti-affinity": (ServerGroupAntiAffinityFilter, "conditions"),
    "soft-affinity": (ServerGroupSoftAffinityWeigher, "raw"),
    "soft-anti-affinity": (ServerGroupSoftAntiAffinityWeigher, "raw"),
    "tried": (RetryFilter, "conditions"),
}


@pytest.mark.parametrize(("kind", "part"), PARTS.items(), ids=PARTS.keys())
def test_few_hosts_are_asked_about(kind, part, monkeypatch):
    """Those that the members run on and those that the group names; and one of the others."""
    cls, method = part
    asked, original = [], getattr(cls, method)

    def spied(self, hosts, request):
        asked.append(len(hosts))
        return original(self, hosts, request)

    monkeypatch.setattr(cls, method, spied)
    [world, _anew] = worlds_of([{}] * 20, [3, 4, 4])
    fields = {"group": {"policy": kind, "members": MEMBERS[:3], "hosts": ["h7"]}}
    if kind == "tried":
        fields = {"tried": [("h3", "n"), ("h4", "n"), ("h7", "n")]}
    world.decide(a_request(**fields), NOW, 1, (), 1, 2)
    assert asked == [4]
