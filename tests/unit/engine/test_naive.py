"""The engine decides as a loop over hosts in plain Python does, one server after the other."""

import random

import pytest

from scheduler import errors
from scheduler.engine import Policy
from scheduler.engine.evaluation import FilterChain, bounds_for
from scheduler.filters.registry import load_filters
from scheduler.hosts.candidates import Scope
from scheduler.hosts.host_state import Consumption
from scheduler.hosts.reservations import Reservations
from scheduler.semantics import CHOICES
from scheduler.weights.base import HostWeigher
from scheduler.weights.registry import load_weighers
from tests.builders import NOW, a_conf, a_fleet, a_request
from tests.unit.engine.deciding import Decider

FILTERS = [
    *("RamFilter", "DiskFilter", "CoreFilter", "ComputeFilter", "AvailabilityZoneFilter"),
    *("ServerGroupAntiAffinityFilter", "ServerGroupAffinityFilter", "NumInstancesFilter"),
]
GROUPS = (None, None, None, "anti-affinity", "affinity", "soft-affinity", "soft-anti-affinity")


class Naive:
    """Decides with the same filters and weighers, host by host, without columns."""

    def __init__(self, table, policy):
        self.reservations = Reservations(table)
        self.table = table
        self.policy = policy

    def place(self, request, uuids, wanted):
        """The hosts chosen, and the alternates of the first; NoValidHost."""
        keeps_ranking = self.policy.semantics.keeps_ranking
        wanted_hosts, ignored = request.force_hosts or (), request.ignore_hosts or ()
        forced, left_out = map(str.lower, wanted_hosts), set(map(str.lower, ignored))
        rows = self.table.order.tolist()
        names = dict(zip(rows, self._names(rows), strict=True))
        allowed = set(forced) or set(names.values())
        rows = [row for row in rows if names[row] in allowed - left_out]
        chosen = []
        ranked = []
        for index, uuid in enumerate(uuids):
            request.instance_uuid = uuid
            scope = self._scope()
            rows, ranked = self._ranked(scope, rows, request, index)
            if not ranked:
                raise errors.NoValidHost(reason="")
            chosen.append(ranked[0])
            self._consume(scope.state(ranked[0]), request)
            if keeps_ranking:
                rows = ranked
        if len(uuids) > 1:
            _rows, ranked = self._ranked(self._scope(), rows, request, len(uuids) - 1)
        cell = self.table.value(chosen[0], "cell_uuid")
        others = [
            row
            for row in ranked
            if row not in chosen and self.table.value(row, "cell_uuid") == cell
        ]
        return self._names(chosen), self._names(others[:wanted])

    def _scope(self):
        return Scope(self.table, NOW, self.policy.service_down_time_seconds)

    def _names(self, rows):
        return [self.table.value(row, "host") for row in rows]

    def _ranked(self, scope, rows, request, index):
        """The rows that pass, in the order given and by weight."""
        filters = [each for each in self.policy.chain.filters if each.run_filter_for_index(index)]
        if request.force_hosts:
            filters = []
        states = [scope.state(row) for row in rows]
        states = [s for s in states if all(each.host_passes(s, request) for each in filters)]
        totals = dict.fromkeys([state.row for state in states], 0.0)
        for each in self.policy.weighers if len(states) > 1 else ():
            raw = {state.row: each._weigh_object(state, request) for state in states}
            ends = min(raw.values()), max(raw.values())
            low, high = bounds_for(each, ends, self.policy.semantics)
            for state in states if low != high else ():
                value = (min(max(raw[state.row], low), high) - low) / (high - low)
                totals[state.row] += value * each.weight_multiplier(state)
        passing = [state.row for state in states]
        return passing, sorted(passing, key=lambda row: -totals[row])

    def _consume(self, state, request):
        group = request.instance_group
        if group is not None:
            group.hosts = [*(group.hosts or []), state.host]
        amount = Consumption.from_request(request, {}, self.policy.fitting)
        self.reservations.reserve(
            [state.row], [(request.instance_uuid, None)], amount, NOW, request.flavor.id
        )


class LooksAtInstances(HostWeigher):
    """A weigher of somebody else's that counts what the table says runs on the host."""

    multiplier_option = "ram_weight_multiplier"

    def raw(self, hosts, request):
        """Servers seen on the host."""
        del request
        return hosts.count_instances(list(hosts.table.host_of_instance))


def a_table(rng, count):
    """Hosts of few sizes, so that many weigh the same, in two zones and two cells."""
    sizes, hosts = rng.randint(1, 3), []
    for _number in range(count):
        hosts.append(
            {
                "total_usable_ram_mb": 4096 * rng.randint(1, sizes),
                "free_ram_mb": 1024 * rng.randint(1, 4 * sizes),
                "free_disk_mb": 1024 * rng.choice([60, 80]),
                "num_io_ops": rng.choice([0, 0, 1]),
                "vcpus_used": rng.randint(0, 2),
                "cell_uuid": rng.choice("ab") if sizes == 3 else "a",
                "aggregates": rng.choice(
                    [[], [], [{"availability_zone": "z1"}], [{"ram_weight_multiplier": "-2"}]]
                ),
                "service": {"disabled": rng.random() < 0.1},
            }
        )
    return a_fleet(*hosts)


def a_policy(rng, semantics):
    multipliers = {
        f"{name}_weight_multiplier": rng.choice([1.0, 1.0, -1.0, 0.0, 0.3])
        for name in ("ram", "disk", "cpu", "io_ops", "num_instances")
    }
    conf = a_conf(
        enabled_filters=FILTERS,
        max_instances_per_host=rng.choice([2, 50]),
        **multipliers,
        scheduler__semantics=semantics,
    )
    weighers = load_weighers(conf)
    if rng.random() < 0.2:
        weighers.append(LooksAtInstances(conf))
    return Policy(FilterChain(load_filters(conf)), weighers, semantics=CHOICES[semantics])


def some_request(rng, policy, uuids):
    group = None if policy is None else {"policy": policy, "members": uuids}
    flavor = {"memory_mb": rng.choice([256, 512, 1024]), "root_gb": rng.choice([0, 1])}
    zone = rng.choice([None, None, "z1"])
    named = {
        name: rng.sample(["h1", "H2", "h3", "h9"], rng.randint(1, 3))
        for name in ("force_hosts", "ignore_hosts")
        if rng.random() < 0.2
    }
    request = a_request(flavor=flavor, group=group, availability_zone=zone, **named)
    return request


@pytest.mark.parametrize("semantics", ["current", "newton"])
@pytest.mark.parametrize("seed", range(60))
def test_every_server_lands_where_the_loop_puts_it(seed, semantics):
    rng = random.Random(f"{seed} {semantics}")
    is_large = seed % 20 == 19  # so large that only the best hosts are kept at hand
    table = a_table(rng, 450 if is_large else rng.choice([1, 2, 5, 20, 60]))
    twin = table.copy()
    policy = a_policy(random.Random(seed), semantics)
    naive = Naive(twin, a_policy(random.Random(seed), semantics))
    decider = Decider(table, policy)
    for number in range(2 if is_large else 4):
        count = 9 if is_large else rng.choice([1, 1, 2, 7, 30])
        uuids = [f"u{number}-{place}" for place in range(count)]
        group, wanted = rng.choice(GROUPS), rng.choice([0, 3])
        state = rng.getstate()
        request = some_request(rng, group, uuids)
        rng.setstate(state)
        other = some_request(rng, group, uuids)
        try:
            expected = naive.place(other, uuids, wanted)
        except errors.NoValidHost:
            with pytest.raises(errors.NoValidHost):
                decider.place(request, uuids, count, wanted)
            return
        placement = decider.place(request, uuids, count, wanted)
        alternates = [state.host for state in placement.alternates[0]]
        assert ([state.host for state in placement.hosts], alternates) == expected
        for name in ("free_ram_mb", "vcpus_used", "num_instances"):
            assert table.column(name).tolist() == twin.column(name).tolist()
