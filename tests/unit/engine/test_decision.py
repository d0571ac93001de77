"""The engine: all instances or none, forced choices, alternates, counts that add up."""

import pytest

from scheduler import errors, objects, semantics
from scheduler.engine import Policy
from scheduler.engine.evaluation import FilterChain
from scheduler.filters.registry import load_filters
from scheduler.hosts.instances import TrackedInstance
from scheduler.weights.base import BaseHostWeigher, HostWeigher
from scheduler.weights.registry import load_weighers
from tests.builders import a_conf, a_fleet, a_request
from tests.unit.engine.deciding import Decider

CONF = a_conf(
    enabled_filters=["RamFilter", "DiskFilter", "ComputeFilter", "ServerGroupAntiAffinityFilter"],
    weight_classes=["nova.scheduler.weights.ram.RAMWeigher"],
)
CHAIN = FilterChain(load_filters(CONF))
WEIGHERS = load_weighers(CONF)


def a_policy(**changes):
    return Policy(**{"chain": CHAIN, "weighers": WEIGHERS, **changes})


def a_decision(table, seed=1, **policy):
    return Decider(table, a_policy(**policy), seed)


def place(decision, request=None, uuids=(), count=1, alternates=0):
    placement = decision.place(request or a_request(), uuids, count, alternates)
    return [state.host for state in placement.hosts]


def contents(table):
    return {
        (key, name): table.value(row, name)
        for key, row in table.rows.items()
        for name in ("free_ram_mb", "free_disk_mb", "vcpus_used", "num_instances", "num_io_ops")
    }


@pytest.mark.parametrize(("most_seconds", "spent_ms"), [(-1.0, 0.0), (60.0, 60_001.0)])
def test_a_request_that_takes_too_long_is_given_up_and_nothing_stays_consumed(
    most_seconds, spent_ms
):
    table = a_fleet({}, {})
    before = contents(table)
    decision = a_decision(table, most_seconds=most_seconds)
    decision.record.stages_ms["filter"] = spent_ms
    with pytest.raises(errors.DecisionGivenUp, match=r"\[scheduler\] max_decision_seconds"):
        place(decision, count=2)
    assert contents(table) == before


@pytest.mark.parametrize(
    ("request_fields", "expected"),
    [
        ({"force_hosts": ["H2"]}, ["h2"]),
        ({"force_nodes": ["n3"]}, ["h3"]),
        ({"force_nodes": ["N3"]}, None),
        ({"force_hosts": ["h2"], "force_nodes": ["n3"]}, None),
        ({"ignore_hosts": ["H1"]}, ["h3"]),
        ({"requested_destination": objects.Destination(host="h3", node="n3")}, ["h3"]),
        ({"requested_destination": objects.Destination(host="h3", node=None)}, ["h3"]),
        ({"requested_destination": objects.Destination(node="n3")}, ["h3"]),
        ({"requested_destination": objects.Destination(node="N3")}, None),
        ({"requested_destination": objects.Destination(host="H3", node="n3")}, None),
        ({"requested_destination": objects.Destination(host="h2", node="n2")}, None),
    ],
    ids=str,
)
def test_narrowing(request_fields, expected):
    """h2 is full: only forcing places anything there."""
    table = a_fleet({"free_ram_mb": 4096}, {"free_ram_mb": -2048}, {"free_ram_mb": 2048})
    decision = a_decision(table)
    if expected is None:
        with pytest.raises(errors.NoValidHost):
            place(decision, a_request(**request_fields))
    else:
        assert place(decision, a_request(**request_fields)) == expected


@pytest.mark.parametrize("forced", [True, False])
def test_limits_are_those_of_each_host_and_a_forced_one_has_none(forced):
    table = a_fleet({}, {"total_usable_ram_mb": 2048})
    request = a_request(force_hosts=["h1", "h2"]) if forced else a_request()
    placement = a_decision(table).place(request, (), 1, 1)
    [[other]] = placement.alternates
    first, second = ({"memory_mb": mb, "disk_gb": 100.0} for mb in (6144.0, 3072.0))
    assert (placement.limits, other.limits) == (([{}], {}) if forced else ([first], second))


def test_the_rebuild_check_runs_filters_on_a_forced_host():
    table = a_fleet({"service": {"disabled": True}}, {})
    request = a_request(force_hosts=["h1"], hints={"_nova_check_type": ["check"]})
    with pytest.raises(errors.NoValidHost):
        place(a_decision(table), request)


def test_hosts_that_say_nothing_or_have_no_service_are_not_chosen():
    table = a_fleet({"free_ram_mb": 4096, "reported": False}, {}, {"free_ram_mb": 1024})
    table.set_service("h2", None, 0.0)
    decision = a_decision(table)
    assert place(decision) == ["h3"]
    assert decision.record.hosts_considered == 2


def test_shuffling_touches_only_hosts_of_equal_best_weight():
    seen = set()
    for seed in range(30):
        table = a_fleet({}, {}, {"free_ram_mb": 1024})
        seen.update(place(a_decision(table, seed, shuffle_best_same_weighed_hosts=True)))
    assert seen == {"h1", "h2"}


def test_newtons_weighers_keep_their_scale_unless_the_request_fails():
    policy = {"weighers": load_weighers(CONF), "semantics": semantics.NEWTON}
    for largest in (8192, 4096):
        place(a_decision(a_fleet({"free_ram_mb": largest}, {}), **policy))
    with pytest.raises(errors.NoValidHost):
        place(a_decision(a_fleet({"free_ram_mb": 16384}, {}), **policy), count=50)
    [ram] = policy["weighers"]
    assert (ram.minval, ram.maxval) == (0, 8192.0)


class Counted(HostWeigher):
    """A weigher without weight that tells equal hosts apart; ``asked`` counts how often."""

    multiplier_option = "num_instances_weight_multiplier"
    asked = 0

    def raw(self, hosts, request):
        del request
        self.asked += 1
        return hosts.num_instances


def test_equal_hosts_are_told_apart_without_going_back_through_every_server():
    counted = Counted(CONF)
    policy = {"weighers": [*WEIGHERS, counted], "semantics": semantics.CURRENT}
    table = a_fleet(*({"free_ram_mb": 4096, "num_instances": number % 2} for number in range(40)))
    decision = a_decision(table, **policy)
    hosts = place(decision, a_request(flavor={"memory_mb": 64}), count=400)
    assert len(set(hosts)) == 40
    assert counted.asked < 5 * 400


class OneByOne(BaseHostWeigher):
    def _weigh_object(self, host_state, weight_properties):
        return host_state.free_ram_mb


def test_a_weigher_that_is_asked_host_by_host_knows_the_servers_placed_before():
    decision = a_decision(
        a_fleet({"free_ram_mb": 4096}, {"free_ram_mb": 3840}), weighers=[OneByOne()]
    )

    assert place(decision, count=3) == ["h1", "h2", "h1"]


def test_newton_takes_a_destination_without_node_for_none():
    request = a_request(requested_destination=objects.Destination(host="h2", node=None))
    with pytest.raises(errors.NoValidHost):
        place(a_decision(a_fleet({}, {}), semantics=semantics.NEWTON), request)


@pytest.mark.parametrize("policy", ["anti-affinity", "soft-anti-affinity"])
def test_servers_of_a_group_that_move_at_the_same_time_stay_apart(policy):
    classes = ["ServerGroupSoftAntiAffinityWeigher"] if policy.startswith("soft") else []
    paths = [f"nova.scheduler.weights.affinity.{name}" for name in classes]
    decision = a_decision(
        a_fleet({}, {}, {}, {}), weighers=load_weighers(a_conf(weight_classes=paths))
    )
    members, table = ["u1", "u2"], decision.reservations.table
    for uuid, host in zip(members, ("h1", "h2"), strict=True):
        table.put_instance(host, uuid, TrackedInstance(uuid, host, vm_state="active"))

    def moved(uuid):
        group = {"policy": policy, "members": members}
        return place(decision, a_request(group=group, ignore_hosts=["h1", "h2"]), [uuid])

    assert [moved("u1"), moved("u2")] == [["h3"], ["h4"]]
    decision.reservations.release_all(list(decision.reservations))
    assert moved("u2") == ["h3"]
