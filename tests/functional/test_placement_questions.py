"""Deciding among all hosts, and asking a real Placement about the chosen one."""

import json
import threading

import pytest

from scheduler import errors
from scheduler.explain.answer import explained, to_dict
from tests.functional.placement_fleet import MB, OWNED, a_name
from tests.functional.test_placement_claims import BOTH, a_worker, database, fleet
from tests.waiting import wait_until

__all__ = ["database", "fleet"]

SLOW = {"trait:CUSTOM_RARE": "required"}
CARDS = {"resources1:CUSTOM_CARD": "1", "resources2:CUSTOM_CARD": "1", "group_policy": "none"}
SHARING = "MISC_SHARES_VIA_AGGREGATE"
BY_VERSION = {"weight_classes": ["scheduler.weights.hypervisor_version.HypervisorVersionWeigher"]}
A_FULL_LIST = {"placement_refusals": 1, "max_placement_results": 1}


@pytest.mark.parametrize(("seconds", "again"), [(60, 1), (0, 3)])
def test_alternates_that_need_more_than_room_are_asked_about_once(fleet, seconds, again):
    nodes = [fleet.add(host, traits=["CUSTOM_RARE"]) for host in ("p1", "p2", "p3")]
    worker = a_worker(fleet, placement_memory_seconds=seconds)
    worker.select("req-1", [a_name()], 512, extra_specs=SLOW)
    assert sorted(worker.asked_about()) == sorted(nodes)
    ((chosen, *others),) = worker.select("req-2", [a_name()], 512, extra_specs=SLOW)
    asked = worker.asked_about()
    assert chosen.compute_node_uuid in asked
    assert len(asked) == again
    for each in others:
        request = json.loads(each.allocation_request)
        assert request["mappings"] == {"": [each.compute_node_uuid]}


def with_cards(fleet, hosts, cards, **report):
    """Add *hosts* with so many *cards*, each in a provider of its own; return their nodes."""
    nodes = [fleet.add(host, **report) for host in hosts]
    fleet.placement.call("PUT", "/resource_classes/CUSTOM_CARD")
    for node in nodes * cards:
        fleet.placement.add_node(a_name(), {"CUSTOM_CARD": 1}, parent=node)
    return nodes


def test_alternates_may_have_nested_providers_of_other_classes(fleet):
    nodes = with_cards(fleet, ("p1", "p2", "p3"), 1)
    worker, card = a_worker(fleet), {"resources1:CUSTOM_CARD": "1"}
    for specs, asked in (({}, nodes), ({}, nodes[:1]), (card, nodes)):
        worker.select("req-1", [a_name()], 512, extra_specs=specs)
        assert len(worker.asked_about()) == len(asked)


def test_the_last_alternate_is_asked_about_beside_the_claim(fleet):
    for host, cards, free_mb in (("p1", 2, 4096), ("p2", 2, 3072), ("p3", 1, 2048)):
        with_cards(fleet, [host], cards, report={"free_ram_mb": free_mb})
    worker, name, claimed = a_worker(fleet), a_name(), threading.Event()
    adapter = worker.driver.claims.client._adapter
    ask = adapter.request

    def request(path, method, **more):
        if method == "GET" and fleet.nodes["p3"] in path:
            assert claimed.wait(10)
        answer = ask(path, method, **more)
        if method == "PUT":
            claimed.set()
        return answer

    adapter.request = request
    (row,) = worker.select("req-1", [name], 512, extra_specs=CARDS)
    assert [each.service_host for each in row] == ["p1", "p2"]
    assert fleet.host_of(name) == ["p1"]


def test_the_trait_of_a_nested_provider_is_not_missed_on_its_host(fleet):
    cards, versions = {"CUSTOM_CARD": 1}, [{"hypervisor_version": number} for number in range(2)]
    fleet.placement.call("PUT", "/resource_classes/CUSTOM_CARD")
    fleet.add("p1", report=versions[0], inventory=cards, traits=["CUSTOM_RARE"])
    node = fleet.add("p2", report=versions[1])
    fleet.placement.add_node(a_name(), cards, ["CUSTOM_RARE"], parent=node)
    worker = a_worker(fleet, policy=BY_VERSION)
    for specs in ({}, {"resources1:CUSTOM_CARD": "1", "trait1:CUSTOM_RARE": "required"}):
        assert worker.hosts("req-1", [a_name()], 512, extra_specs=specs) == ["p2"]


def test_a_host_whose_devices_are_claimed_is_not_asked_about(fleet):
    with_cards(fleet, ("p1", "p2", "p3"), 2)
    worker = a_worker(fleet)
    hosts = [worker.hosts(f"req-{n}", [a_name()], 512, extra_specs=CARDS) for n in range(3)]
    assert sorted(hosts) == [["p1"], ["p2"], ["p3"]]
    worker.asked_about()
    with pytest.raises(errors.NoValidHost):
        worker.hosts("req-4", [a_name()], 512, extra_specs=CARDS)
    assert worker.asked_about() == [""]
    assert worker.hosts("req-5", [a_name()], 512)


def test_refusals_that_are_not_in_a_row_fetch_no_list(fleet):
    nodes = with_cards(fleet, ("p1", "p2", "p3", "p4"), 2)
    others, worker = a_worker(fleet), a_worker(fleet, placement_refusals=1)
    taken = others.hosts("req-1", [a_name()], 512, extra_specs=CARDS)
    assert worker.hosts("req-2", [a_name()], 512, extra_specs=CARDS) != taken
    assert sorted(worker.asked_about()) == sorted(nodes)


def test_hosts_are_passed_over_by_what_an_answer_for_others_told(fleet):
    for host in ("p1", "p2"):
        fleet.add(host)
    slow = fleet.add("p3", traits=["CUSTOM_RARE"])
    worker = a_worker(fleet)
    worker.hosts("req-1", [a_name() for _host in range(3)], MB)
    assert len(worker.asked_about()) == 3
    worker.select("req-2", [a_name()], 0, extra_specs=SLOW, flavor={"vcpus": 0, "root_gb": 1})
    assert worker.asked_about() == [slow]


@pytest.mark.parametrize(("seconds", "again"), [(60, 1), (0, 4)])
def test_refused_hosts_are_passed_over_for_a_while(fleet, seconds, again):
    nodes = [fleet.add(host) for host in ("p1", "p2", "p3")]
    slow = fleet.add("p4", traits=["CUSTOM_RARE"])
    worker = a_worker(fleet, placement_refusals=10, placement_memory_seconds=seconds)
    # A list costs too much to be fetched soon.
    worker.driver.claims.memory.fetched("", 1000, is_all=True)
    assert worker.hosts("req-1", [a_name()], 512, extra_specs=SLOW) == ["p4"]
    assert sorted(worker.asked_about()) == sorted([*nodes, slow])
    assert worker.hosts("req-2", [a_name()], 512, extra_specs=SLOW) == ["p4"]
    assert len(worker.asked_about()) == again
    # As there are no others, they are not passed over without a question.
    for node in nodes:
        path = f"/resource_providers/{node}/traits"
        known = fleet.placement.call("GET", path)
        known["traits"].append("CUSTOM_RARE")
        fleet.placement.call("PUT", path, known)
    hosts = worker.hosts("req-3", [a_name(), a_name(), a_name()], MB, extra_specs=SLOW)
    assert sorted(hosts) == ["p1", "p2", "p3"]


def test_after_some_refusals_the_fleet_is_listed_and_the_list_remembered(fleet):
    for host in ("p1", "p2", "p3", "p4"):
        fleet.add(host)
    slow = fleet.add("p5", traits=["CUSTOM_RARE"])
    worker = a_worker(fleet, placement_refusals=2)
    assert worker.hosts("req-1", [a_name()], 512, extra_specs=SLOW) == ["p5"]
    assert worker.asked_about().count("") == 1
    assert worker.hosts("req-2", [a_name()], 512, extra_specs=SLOW) == ["p5"]
    assert worker.asked_about() == [slow]


def test_why_placement_refused_a_host_is_found_beside_the_request(fleet):
    for host in ("p1", "p2", "p3"):
        fleet.add(host, traits=["CUSTOM_RARE"] * (host == "p3"))
    worker = a_worker(fleet, placement_refusals=10)
    worker.driver.claims.memory.fetched("", 1000, is_all=True)
    assert worker.hosts("req-1", [a_name()], 512, extra_specs=SLOW) == ["p3"]
    use = worker.driver.recorder.records[-1].placement
    assert use.asked == [*use.refused, "p3"]
    first = next(iter(use.refused))
    wait_until(lambda: use.refused[first], 60, "the cause is known")
    assert use.refused[first] == "it has no trait CUSTOM_RARE"
    assert use.to_dict()["calls"] == {"question": len(use.asked), "claim": 1}


def test_after_one_refusal_all_hosts_without_the_trait_are_passed_over(fleet):
    for number in range(1, 7):
        fleet.add(f"p{number}")
    slow = fleet.add("p7", traits=["CUSTOM_RARE"])
    worker = a_worker(fleet, placement_refusals=1)
    assert worker.hosts("req-1", [a_name()], 512, extra_specs=SLOW) == ["p7"]
    use = worker.driver.recorder.records[-1].placement
    assert 0 < len(use.refused) < 6
    wait_until(lambda: all(use.refused.values()), 60, "the cause is known")
    worker.asked_about()
    for size_mb in (256, 300):  # other flavors, of which no list was fetched
        assert worker.hosts("req-2", [a_name()], size_mb, extra_specs=SLOW) == ["p7"]
        assert worker.asked_about() == [slow]


def test_a_refusal_names_what_is_lacking_also_when_it_is_remembered(fleet):
    hosts = ("p1", "p2")
    for host in hosts:
        fleet.add(host)
        fleet.take(host)
    worker, reason = a_worker(fleet), "0 MEMORY_MB free, 512 wanted"
    for request in ("req-1", "req-2"):
        with pytest.raises(errors.NoValidHost):
            worker.select(request, [a_name()], 512)
        record = worker.driver.recorder.records[-1]
        refused = record.placement.refused
        assert record.races_lost == 0
        wait_until(lambda known=refused: all(map(known.get, hosts)), 60, "the causes are known")
        assert refused == dict.fromkeys(hosts, reason)
        named = f"; Placement offers no room on {next(iter(refused))}: {reason}"
        assert named in to_dict(record)["cause"]
    [on_host] = explained(record, worker.driver, "p2")["on_host"]
    assert on_host["text"] == f"Placement did not offer the host: {reason}"


def test_hosts_that_a_full_list_had_no_place_for_are_asked_about(fleet):
    """No other test's host has the trait: the list would name that."""
    rare = {"trait:CUSTOM_LISTED": "required"}
    for number in (99, 98, 97, 96, 9, 8, 7, 4, 5):
        traits = ["CUSTOM_LISTED"] * (number < 6)
        fleet.add(f"p{number}", report={"hypervisor_version": number}, traits=traits)
    workers = [a_worker(fleet, policy=BY_VERSION, **A_FULL_LIST) for _number in range(3)]
    best = {"ignore_hosts": ["p99", "p98", "p97", "p96"]}  # also where a worse one is on the list
    assert workers.pop().hosts("req-1", [a_name()], 512, extra_specs=rare, **best) == ["p5"]
    asked = []
    for worker, other in zip(workers, ("p4", "p5"), strict=True):
        (host,) = worker.hosts("req-2", [a_name()], 512, extra_specs=rare, ignore_hosts=[other])
        assert {host, other} == {"p4", "p5"}
        asked.append(len(worker.asked_about()))
        worker.learn()
        assert worker.hosts("req-3", [a_name()], 512, extra_specs=rare) == ["p5"]
    assert min(asked) == 5  # two, the list and two more: then the one on the list will do
    with pytest.raises(errors.NoValidHost):
        worker.hosts("req-9", [a_name()], extra_specs=rare, ignore_hosts=["p4", "p5"])


@pytest.mark.parametrize(("most", "asked"), [(1000, 0), (2, 6)])
def test_for_many_servers_the_fleet_is_listed_unless_the_list_is_cut_off(fleet, most, asked):
    worker = with_dear_questions(fleet, 6, max_placement_results=most)
    for request in ("req-1", "req-2"):
        hosts = worker.hosts(request, [a_name() for _host in range(6)], MB // 2, extra_specs=SLOW)
        assert len(set(hosts)) == 6
        paths = worker.asked_about()
        if request == "req-2":
            assert (paths.count(""), len(paths)) == ((0, asked) if asked else (1, 1))


def with_dear_questions(fleet, hosts, **options):
    """A worker for so many hosts, for whom questions cost much more than a list."""
    for number in range(hosts):
        fleet.add(f"p{number}", traits=["CUSTOM_RARE"])
    worker = a_worker(fleet, **options)
    worker.driver.claims.memory.asked(100_000)
    return worker


def test_many_servers_that_need_nothing_but_room_are_claimed_without_questions(fleet):
    worker = with_dear_questions(fleet, 7)
    fleet.take("p5")
    names = [a_name() for _host in range(6)]
    hosts = worker.hosts("req-1", names, MB)
    assert sorted(hosts) == ["p0", "p1", "p2", "p3", "p4", "p6"]
    assert [fleet.host_of(name) for name in names] == [[host] for host in hosts]
    assert worker.asked_about() == [fleet.nodes["p6"]]  # one server is not many


def test_many_servers_get_no_host_that_placement_alone_knows_to_be_disabled(fleet):
    worker = with_dear_questions(fleet, 7)
    path = f"/resource_providers/{fleet.nodes['p3']}/traits"
    known = fleet.placement.call("GET", path)
    fleet.placement.call("PUT", path, {**known, "traits": ["COMPUTE_STATUS_DISABLED", *OWNED]})
    hosts = worker.hosts("req-1", [a_name() for _host in range(6)], MB)
    assert sorted(hosts) == ["p0", "p1", "p2", "p4", "p5", "p6"]


def test_hosts_that_filters_refuse_are_not_asked_about(fleet):
    fleet.add("p1")
    worker = a_worker(fleet)
    with pytest.raises(errors.NoValidHost):
        worker.hosts("req-1", [a_name()], 5 * MB)
    assert worker.asked_about() == []


@pytest.fixture
def shared_disk(fleet):
    """A provider of disk, and the aggregate of those who may have of it."""
    disk, aggregate = a_name(), a_name()
    fleet.placement.add_node(disk, {"DISK_GB": 1000}, [SHARING], [aggregate])
    yield disk, aggregate
    path = f"/resource_providers/{disk}/traits"  # other tests use the same Placement
    fleet.placement.call("PUT", path, {**fleet.placement.call("GET", path), "traits": []})


def test_a_host_that_takes_some_of_the_servers_is_not_lost_by_a_full_list(fleet, shared_disk):
    """The next best one is full: a list is fetched, whose only place another host may have."""
    rooms = {"p9": 2 * MB, "p8": 512, "p1": MB, "p2": MB, "p3": MB, "p4": MB}
    for host, room in rooms.items():
        report = {"hypervisor_version": int(host[1:]), "memory_mb": 9 * MB, "free_ram_mb": 9 * MB}
        inventory = {"MEMORY_MB": room, "DISK_GB": 0}
        fleet.add(host, report=report, inventory=inventory, aggregates=[shared_disk[1]])
    worker = a_worker(fleet, policy=BY_VERSION, **A_FULL_LIST)
    hosts = worker.hosts("req-1", [a_name() for _ in range(6)])
    assert hosts == ["p9", "p9", "p4", "p3", "p2", "p1"]


@BOTH
def test_several_servers_that_find_too_little_shared_disk_are_refused(fleet, shared_disk):
    _disk, aggregate = shared_disk
    for number in range(10):
        fleet.add(f"p{number}", inventory={"DISK_GB": 0}, aggregates=[aggregate])
    worker = a_worker(fleet)
    with pytest.raises(errors.NoValidHost):
        worker.hosts("req-1", [a_name() for _ in range(3)], 256, flavor={"root_gb": 400})
    assert set(fleet.used_mb().values()) == {0}


@BOTH
def test_disk_that_several_hosts_share_is_claimed_where_it_is(fleet, shared_disk):
    disk, aggregate = shared_disk
    for host in ("p1", "p2"):
        fleet.add(host, inventory={"DISK_GB": 0}, aggregates=[aggregate])
    worker = a_worker(fleet)
    names = [a_name(), a_name()]
    answer = worker.select("req-1", names)
    for name, (chosen, *_others) in zip(names, answer, strict=True):
        request = json.loads(chosen.allocation_request)
        assert sorted(request["mappings"][""]) == sorted([chosen.compute_node_uuid, disk])
        assert set(request["mappings"]) == {""}
        assert fleet.placement.allocations(name) == {
            chosen.compute_node_uuid: {"MEMORY_MB": MB, "VCPU": 1},
            disk: {"DISK_GB": 1},
        }
    assert sorted(row[0].service_host for row in answer) == ["p1", "p2"]
    fleet.add("p3", inventory={"DISK_GB": 0})  # before, it would have had a list fetched
    with pytest.raises(errors.NoValidHost):
        worker.select("req-2", [a_name()])


def test_it_is_looked_up_again_what_is_shared(fleet, monkeypatch, request):
    fleet.add("p1")
    worker = a_worker(fleet)
    request.getfixturevalue("shared_disk")
    monkeypatch.setattr("scheduler.claims.placement.memory.SHARED_SECONDS", 0.0)
    worker.hosts("req-1", [a_name()], 512)
    wait_until(lambda: worker.driver.claims.memory.shared == {"DISK_GB"}, 60, "it is known")


@BOTH
def test_each_server_of_a_request_takes_a_provider_that_is_left(fleet):
    """A tree has several providers of a class, and what the first server took is gone."""
    with_cards(fleet, ["p1"], 3)
    worker, card = a_worker(fleet), {"resources1:CUSTOM_CARD": "1"}
    names = [a_name() for _card in range(3)]
    answer = worker.select("req-1", names, 512, extra_specs=card)
    for name, (chosen,) in zip(names, answer, strict=True):
        taken = json.loads(chosen.allocation_request)["allocations"]
        assert fleet.placement.allocations(name) == {u: e["resources"] for u, e in taken.items()}
    assert len(set().union(*map(fleet.placement.allocations, names))) == 4
    with pytest.raises(errors.NoValidHost):
        worker.select("req-2", [a_name()], 512, extra_specs=card)


@BOTH
def test_servers_take_a_host_s_own_disk_and_the_disk_that_it_shares(fleet, shared_disk):
    disk, aggregate = shared_disk
    node = fleet.add("p1", inventory={"DISK_GB": 900}, aggregates=[aggregate])
    worker, names = a_worker(fleet), [a_name(), a_name()]
    assert worker.hosts("req-1", names, 512, flavor={"root_gb": 800}) == ["p1"] * 2
    taken = [fleet.placement.allocations(name) for name in names]
    assert sorted(map(len, taken)) == [1, 2]
    assert set().union(*taken) == {node, disk}
