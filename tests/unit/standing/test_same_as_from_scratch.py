"""What stands between decisions never shows: they are those of a scheduler that starts anew.

Two schedulers live through the same: hosts come, change and go, services fall silent, time passes,
requests of many kinds are placed, picks are given back.  One keeps results, the other does not.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from scheduler import errors, objects
from scheduler.drivers.pipeline import Decision
from scheduler.drivers.settings import configured_policy
from scheduler.explain.record import DecisionRecord
from scheduler.filters.base import BaseHostFilter
from scheduler.hosts.books import Books, TrackedInstance
from scheduler.hosts.host_manager import HostManager
from scheduler.hosts.table import HostTable
from scheduler.standing import StandingResults, classes, front, later, run
from scheduler.weights.base import BaseHostWeigher
from tests import cells, fleets
from tests.builders import NOW, a_conf, a_host, a_request
from tests.unit.standing.fleets import EQUALS, FULL_FIRST

UUIDS = [f"aaaaaaaa-0000-4000-a000-00000000000{n}" for n in range(4)]
HOSTS = [("h1", "n1"), ("h1", "n2"), ("h2", "n2"), ("h3", "n3"), ("H1", "n4"), ("h5", "n5")]
FILTERS = [
    "RetryFilter",
    "AvailabilityZoneFilter",
    "AggregateRamFilter",
    "RamFilter",
    "DiskFilter",
    "OddNumbersFilter",
    "CoreFilter",
    "ComputeFilter",
    "ComputeCapabilitiesFilter",
    "AggregateInstanceExtraSpecsFilter",
    "ImagePropertiesFilter",
    "IoOpsFilter",
    "SameHostFilter",
    "DifferentHostFilter",
    "JsonFilter",
    "PciPassthroughFilter",
    "NUMATopologyFilter",
    "ServerGroupAntiAffinityFilter",
    "ServerGroupAffinityFilter",
]
OWN_FILTERS = [name for name in FILTERS if name != "OddNumbersFilter"]
NAME = f"{__name__}.OddNumbersFilter"


GROUP = {"members": UUIDS[:2], "hosts": ["h1"], "rules": {"max_server_per_host": "2"}}
#: Few kinds of requests, so that the same ones come again after changes; most hosts can serve most.
KINDS = [
    {},
    {"flavor": {"memory_mb": 1024, "vcpus": 2}},
    {"flavor": {"root_gb": 40}},
    {"flavor": {"memory_mb": 0, "root_gb": 0}},
    {"flavor": {"vcpus": 5}},
    {"flavor": {"extra_specs": {"tier": "gold"}}},
    {"flavor": {"extra_specs": {"capabilities:free_ram_mb": ">= 2048"}}},
    {"image": {"hw_architecture": "x86_64", "img_hv_requested_version": ">=2.5"}},
    {"availability_zone": "z1"},
    {"availability_zone": "nova"},
    {"hints": {"query": ['[">=", "$free_ram_mb", 2048]']}},
    {"hints": {"query": ['["<", "$num_io_ops", 3]']}},
    {"hints": {"same_host": UUIDS[:2]}},
    {"hints": {"different_host": UUIDS[:1]}},
    {"hints": {"different_host": UUIDS[2:]}, "group": {"policy": "soft-anti-affinity", **GROUP}},
    {"hints": {"_nova_check_type": ["rebuild"]}},
    {"tried": [("h1", "n1"), ("h2", None)]},
    {"ignore_hosts": ["H1"]},
    {"force_hosts": ["h2"]},
    *[
        {"group": {"policy": policy, **GROUP}}
        for policy in ("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity")
    ],
]
_plain_hosts = st.fixed_dictionaries(
    {},
    optional={
        "free_ram_mb": st.sampled_from([1024, 2048, 3072]),
        "free_disk_mb": st.sampled_from([50 * 1024, 80 * 1024]),
        "num_io_ops": st.integers(0, 8),
        "pci_stats": st.just(cells.POOLS),
        "numa_topology": st.just(cells.TOPOLOGY),
        "reported": st.booleans(),
        "failed_builds": st.integers(0, 2),
    },
)
_hosts = st.one_of(st.just({}), _plain_hosts, _plain_hosts, fleets._host)
_requests = st.one_of(
    st.sampled_from(KINDS).map(lambda kind: a_request(**kind)),
    st.sampled_from(KINDS).map(lambda kind: a_request(**kind)),
    st.builds(lambda cells: a_request(numa_topology=cells), cells.guests()),
    st.builds(lambda devices: a_request(pci_requests=devices), cells.devices()),
    fleets.requests(),
)


class OddNumbersFilter(BaseHostFilter):
    """One that knows nothing of columns and cares for few requests."""

    def host_passes(self, host_state, spec_obj):
        return spec_obj.vcpus != 5 or host_state.num_io_ops % 2 == 1


class StubbornWeigher(BaseHostWeigher):
    """One that knows nothing of columns."""

    def _weigh_object(self, host_state, weight_properties):
        return float(host_state.num_instances * weight_properties.vcpus)


class World:
    """One scheduler's table, books and parts."""

    def __init__(self, conf, *, keeps_results):
        self.table = HostTable()
        self.books = Books(self.table)

        class Manager:
            option_of_filters = staticmethod(HostManager.option_of_filters)

        self.policy = configured_policy(conf, Manager)
        self.results = None
        if keeps_results:
            self.results = StandingResults(
                self.table,
                self.policy.chain.filters,
                self.policy.weighers,
                self.policy.semantics,
                self.policy.service_down_time_seconds,
                20_000,
            )

    def decide(self, request, now, seed, uuids, count, alternates):
        """Everything that anybody can see of one decision."""
        record = DecisionRecord(None, tuple(uuids), count, seed)
        rng = random.Random(seed)
        decision = Decision(self.books, self.policy, rng, now, record, results=self.results)
        try:
            placement = decision.place(request, uuids, count, alternates)
        except errors.NovaException as error:
            found = type(error), str(error)
        else:
            found = [
                [(state.row, repr(limits)), [(other.row, repr(other.limits)) for other in others]]
                for state, limits, others in zip(
                    placement.hosts, placement.limits, placement.alternates, strict=True
                )
            ]
        bounds = [(weigher.minval, weigher.maxval) for weigher in self.policy.weighers]
        told = record.filters, record.removed_before_filters, record.placed_before_failure
        return found, told, decision.rng.random(), bounds


class Twins(RuleBasedStateMachine):
    """The two schedulers and what happens to both."""

    options: dict = {}
    extra: dict = {}

    @initialize(
        hosts=st.lists(_hosts, min_size=6, max_size=6),
        requests=st.lists(_requests, min_size=3, max_size=3),
    )
    def begin(self, hosts, requests):
        self.requests = requests
        conf = a_conf(
            available_filters=["nova.scheduler.filters.all_filters", NAME],
            **{"enabled_filters": OWN_FILTERS, **self.options},
        )
        for name, value in self.extra.items():
            conf.set_override(name, value, group="scheduler")
        self.worlds = [World(conf, keeps_results=keeps) for keeps in (True, False)]
        self.now = NOW
        self.decisions = 0
        for key, host in zip(HOSTS, hosts, strict=True):
            self.report(key, host)

    def both(self, act):
        """Let it happen to both, and look whether anybody can tell."""
        for world in self.worlds:
            act(world)
        self.ask_all()

    def ask_all(self):
        for request in self.requests:
            self.place(request, 1, 1, is_named=True)

    @rule(key=st.sampled_from(HOSTS), host=_hosts)
    def report(self, key, host):
        def act(world):
            known = world.table.rows.get(key)
            node_id = HOSTS.index(key) if known is None else world.table.value(known, "node_id")
            a_host(*key, table=world.table, **{"node_id": node_id, **host})

        self.both(act)

    @rule(key=st.sampled_from(HOSTS), node_id=st.integers(50, 60))
    def vanish_and_come_back(self, key, node_id):
        def act(world):
            if key in world.table.rows:
                world.table.remove(key)
            if node_id > 53:
                a_host(*key, table=world.table, node_id=node_id * 10 + HOSTS.index(key))

        self.both(act)

    @rule(
        host=st.sampled_from(["h1", "h2", "h3", "h5"]),
        service=st.one_of(
            st.none(),
            st.fixed_dictionaries({"disabled": st.booleans(), "forced_down": st.booleans()}),
        ),
        ago=st.sampled_from([0.0, 30.0, 60.0, 61.0, -61.0]),
    )
    def serve(self, host, service, ago):
        self.both(lambda world: world.table.set_service(host, service, self.now - ago))

    @rule(seconds=st.sampled_from([0.0, 1.0, 30.0, 61.0, -5.0]))
    def pass_time(self, seconds):
        self.now += seconds
        self.ask_all()

    @rule(
        host=st.sampled_from(["h1", "h2", "h3"]),
        metadata=st.sampled_from(
            [{}, {"availability_zone": "z1"}, {"ram_weight_multiplier": "-2"}, {"tier": "gold"}]
        ),
    )
    def aggregate(self, host, metadata):
        aggregate = objects.Aggregate(id=9, uuid="u9", name="a9", metadata=metadata)

        def act(world):
            known = dict(world.table.aggregates_of_host)
            known[host] = (aggregate,)
            world.table.set_aggregates(known)

        self.both(act)

    @rule(host=st.sampled_from(["h1", "h2", "h3"]), uuid=st.sampled_from(UUIDS))
    def run_instance(self, host, uuid):
        self.both(lambda world: world.table.put_instance(host, uuid, TrackedInstance(uuid, host)))

    @rule(uuid=st.sampled_from(UUIDS))
    def end_instance(self, uuid):
        self.both(lambda world: world.table.drop_instance(uuid))

    @rule(amount=st.integers(-3, 3), row=st.integers(0, 5))
    def work(self, amount, row):
        self.both(lambda world: world.table.add(row, {"num_io_ops": amount}))

    @rule(number=st.integers(0, 100))
    def give_back(self, number):
        for world in self.worlds:
            if picks := list(world.books):
                world.books.undo(picks[number % len(picks)])

    @rule(
        number=st.integers(0, 2),
        count=st.sampled_from([1, 1, 1, 2, 3, 5, 12]),
        alternates=st.integers(0, 3),
        times=st.integers(1, 3),
        is_named=st.booleans(),
    )
    def decide(self, number, count, alternates, times, is_named):
        request = self.requests[number]
        for _ in range(times):
            self.place(request, count, alternates, is_named=is_named)

    def place(self, request, count, alternates, *, is_named):
        self.decisions += 1
        number = self.decisions * 100
        uuids = [f"bbbbbbbb-0000-4000-a000-{number + n:012}" for n in range(count)]
        asked = self.now, self.decisions, uuids if is_named else (), count, alternates
        kept, anew = (world.decide(request.copy(), *asked) for world in self.worlds)
        for one, other in zip(kept, anew, strict=True):
            assert one == other


WEIGHERS = ["nova.scheduler.weights.all_weighers"]
RAM, DISK = "nova.scheduler.weights.ram.RAMWeigher", "nova.scheduler.weights.disk.DiskWeigher"
CONFIGURATIONS = {
    "many equals": {"options": {"weight_classes": [RAM]}},
    "equal at times": {"options": {"weight_classes": [RAM, DISK]}},
    "current": {"options": {}},
    "newton": {"options": {}, "extra": {"semantics": "newton"}},
    "a choice among three": {"options": {"host_subset_size": 3}},
    "the best shuffled": {"options": {"shuffle_best_same_weighed_hosts": True}},
    "a strange filter": {"options": {"enabled_filters": FILTERS}},
    "a strange weigher": {
        "options": {"weight_classes": [*WEIGHERS, f"{__name__}.StubbornWeigher"]}
    },
}


@pytest.mark.parametrize("apart", [3, front.SIZE], ids=["few apart", "many apart"])
@pytest.mark.parametrize("parts", CONFIGURATIONS.values(), ids=CONFIGURATIONS.keys())
def test_decisions_are_those_of_a_scheduler_that_starts_anew(parts, apart, monkeypatch):
    monkeypatch.setattr(front, "SIZE", apart)
    monkeypatch.setattr(later, "PAUSE", 0)
    monkeypatch.setattr(run, "WORTH", 0)
    monkeypatch.setattr(classes, "QUICKLY_WEIGHED", 1 if apart == 3 else 64)
    machine = type("Machine", (Twins,), {"options": {}, "extra": {}, **parts})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=15,
            stateful_step_count=25,
            deadline=None,
            phases=[Phase.explicit, Phase.reuse, Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_equal_hosts_stand_as_they_did_when_they_were_not():
    """The second host was ahead of the first until the third had lost the most memory."""
    sizes = {"h1": (2000, 1000), "h2": (1000, 2000), "h3": (4000, 1000)}
    found = []
    for keeps_results in (True, False):
        conf = a_conf(enabled_filters=["RamFilter"], weight_classes=[RAM, DISK])
        world = World(conf, keeps_results=keeps_results)
        for host, (ram, disk) in sizes.items():
            a_host(host, "n", table=world.table, free_ram_mb=ram, free_disk_mb=disk)
        request = a_request(flavor={"memory_mb": 1000, "root_gb": 0})
        placed, *_others = world.decide(request, NOW, 1, UUIDS, 4, 0)
        found.append([sorted(sizes)[row] for (row, _limits), _alternates in placed])
    assert found == [["h3", "h3", "h3", "h2"]] * 2


_sizes = st.fixed_dictionaries(
    {
        "free_ram_mb": st.integers(1, 16).map(lambda gb: gb * 1024),
        "free_disk_mb": st.integers(10, 90).map(lambda gb: gb * 1024),
        "vcpus_used": st.integers(0, 3),
        "num_io_ops": st.integers(0, 6),
        "failed_builds": st.sampled_from([0, 0, 0, 1]),
    }
)
_factors = st.sampled_from(
    [{}, {}, {"ram_weight_multiplier": "-1"}, {"ram_weight_multiplier": "2"}]
)
STACKING = {"ram_weight_multiplier": -1.0, "disk_weight_multiplier": -0.5}
LARGE = {
    "current": {},
    "stacking": {"filter_scheduler": STACKING},
    "newton": {"scheduler": {"semantics": "newton"}},
}


@pytest.mark.parametrize("options", LARGE.values(), ids=LARGE.keys())
@pytest.mark.parametrize(("apart", "calm"), [(2, 0), (8, 0), (64, 2)])
@example(hosts=EQUALS, factors={}, counts=[10], alternates=0)
@example(hosts=FULL_FIRST, factors={"ram_weight_multiplier": "2"}, counts=[47, 33], alternates=1)
@settings(
    max_examples=25,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(
    hosts=st.one_of(
        st.lists(_sizes, min_size=1, max_size=24),
        st.builds(lambda sizes, number: [sizes] * number, _sizes, st.integers(3, 24)),
    ),
    factors=_factors,
    counts=st.lists(st.integers(1, 60), min_size=1, max_size=3),
    alternates=st.integers(0, 2),
)
def test_many_servers_go_where_they_would_go_one_by_one(
    monkeypatch, options, apart, calm, hosts, factors, counts, alternates
):
    monkeypatch.setattr(front, "SIZE", apart)
    monkeypatch.setattr(later, "PAUSE", 0)
    for name, value in {"CALM": calm, "WORTH": calm, "PATIENT": calm}.items():
        monkeypatch.setattr(run, name, value)
    conf = a_conf(enabled_filters=["RamFilter", "DiskFilter", "IoOpsFilter"])
    for group, values in options.items():
        for name, value in values.items():
            conf.set_override(name, value, group=group)
    worlds = [World(conf, keeps_results=keeps) for keeps in (True, False)]
    for world in worlds:
        for number, sizes in enumerate(hosts):
            a_host(f"h{number}", "n", table=world.table, node_id=number, **sizes)
        aggregate = objects.Aggregate(id=9, uuid="u9", name="a9", metadata=factors)
        world.table.set_aggregates({"h1": (aggregate,)})
    request = a_request(flavor={"memory_mb": 1024, "root_gb": 1, "vcpus": 1})
    for turn, count in enumerate(counts):
        uuids = [f"bbbbbbbb-0000-4000-a000-{turn * 1000 + n:012}" for n in range(count)]
        asked = NOW, turn, uuids, count, alternates
        kept, anew = (world.decide(request.copy(), *asked) for world in worlds)
        assert kept == anew
