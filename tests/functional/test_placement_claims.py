"""Claims in a real Placement service: candidates, claims, races, repeats and outages."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from conductor_stub.alternates import PlacementAlternates
from scheduler import errors
from scheduler.claims.placement.client import PlacementClient
from tests.builders import a_request
from tests.functional.placement_fleet import MB, PROJECT, USER, Context, Fleet, Worker, a_name
from tests.world import databases


@pytest.fixture
def database(tmp_path):
    with databases.synced(f"sqlite:///{tmp_path}/fleet.sqlite") as made:
        yield made


@pytest.fixture
def fleet(database, placement_server, request):
    return Fleet(database, placement_server, getattr(request, "param", "chosen"))


#: What is claimed, and for whom, is the same however Placement is asked.
BOTH = pytest.mark.parametrize("fleet", ["chosen", "fleet"], indirect=True)


def a_worker(fleet, **options):
    settings = fleet.placement.settings
    return Worker(fleet.database, settings, placement_query=fleet.query, **options)


def three_hosts(fleet):
    for host in ("p1", "p2", "p3"):
        fleet.add(host)


@BOTH
def test_the_chosen_host_is_claimed_and_alternates_say_how_to(fleet):
    three_hosts(fleet)
    name = a_name()
    ((chosen, *others),) = a_worker(fleet).select("req-1", [name])
    assert fleet.host_of(name) == [chosen.service_host]
    assert len(others) == 2
    for each in (chosen, *others):
        wanted = {"DISK_GB": 1, "MEMORY_MB": MB, "VCPU": 1}
        request = json.loads(each.allocation_request)
        assert request["allocations"] == {each.compute_node_uuid: {"resources": wanted}}
        assert request["mappings"] == {"": [each.compute_node_uuid]}
        assert each.allocation_request_version == "1.36"


@BOTH
def test_hosts_that_placement_does_not_offer_are_not_chosen(fleet):
    fleet.add("p1", known=False)
    fleet.add("p2", traits=["CUSTOM_SLOW", "COMPUTE_STATUS_DISABLED"])
    fleet.add("p3", traits=["CUSTOM_SLOW"])
    fleet.add("p4", traits=["CUSTOM_FAST"])
    worker = a_worker(fleet)
    slow = {"trait:CUSTOM_SLOW": "required"}
    assert worker.hosts("req-1", [a_name()], extra_specs=slow) == ["p3"]
    record = worker.driver.recorder.records[-1]
    assert record.hosts_considered == 1
    not_slow = {"trait:CUSTOM_SLOW": "forbidden"}
    assert worker.hosts("req-2", [a_name()], extra_specs=not_slow) == ["p4"]
    with pytest.raises(errors.NoValidHost, match=r"^No valid host was found\. $"):
        worker.select("req-3", [a_name()], extra_specs=slow)
    assert "Placement" in worker.driver.recorder.records[-1].failure


@BOTH
def test_requests_of_several_servers_that_race_are_placed_whole_and_leak_nothing(fleet):
    three_hosts(fleet)
    workers = [a_worker(fleet) for _ in range(3)]
    requests = [[a_name(), a_name()] for _ in range(9)]

    def ask(number):
        try:
            return workers[number % 3].hosts(f"req-{number}", requests[number], MB // 4)
        except errors.NoValidHost:
            return []

    with ThreadPoolExecutor(len(requests)) as pool:
        answers = list(pool.map(ask, range(len(requests))))
    placed = 0
    for names, hosts in zip(requests, answers, strict=True):
        assert len(hosts) in (0, len(names))
        placed += len(hosts)
        for name, host in zip(names, hosts or [None] * len(names), strict=True):
            assert fleet.host_of(name) == ([host] if host else [])
    assert sum(fleet.used_mb().values()) == placed * MB // 4
    # Whatever the refused ones held for a moment is there for others.
    for number in range(12 - placed):
        workers[number % 3].hosts(f"req-late-{number}", [a_name()], MB // 4)
    assert set(fleet.used_mb().values()) == {MB}
    for each in workers:
        with pytest.raises(errors.NoValidHost):
            each.hosts("req-last", [a_name()], MB // 4)


def test_a_request_delivered_to_two_workers_is_claimed_once(fleet):
    three_hosts(fleet)
    names = [a_name(), a_name(), a_name()]
    for name in names:
        fleet.instance(name, None, "building")
    first = a_worker(fleet).hosts("req-1", names)
    again = a_worker(fleet).hosts("req-1", names)  # the fleet is full by now
    assert again == first
    assert set(fleet.used_mb().values()) == {MB}
    small = a_name()
    fleet.placement.call("DELETE", f"/allocations/{names[0]}")
    ((chosen, *_others),) = a_worker(fleet).select("req-2", [small], 1024)
    ((repeated, *_others),) = a_worker(fleet).select("req-2", [small], 1024)
    assert repeated.service_host == chosen.service_host
    assert json.loads(repeated.allocation_request) == json.loads(chosen.allocation_request)


def test_a_request_that_two_workers_decide_at_once_gets_one_answer(fleet):
    three_hosts(fleet)
    workers = [a_worker(fleet) for _ in range(2)]
    for number in range(4):
        names = [a_name(), a_name()]

        def ask(worker, names=names, number=number):
            # The broker has sent it to one, whose acknowledgement was lost, and so to another.
            is_again = worker is workers[1]
            return worker.hosts(f"req-{number}", names, MB // 4, is_redelivered=is_again)

        with ThreadPoolExecutor(2) as pool:
            first, again = pool.map(ask, workers)
        assert first == again
        assert [fleet.host_of(name) for name in names] == [[host] for host in first]
    assert sum(fleet.used_mb().values()) == 8 * MB // 4


def test_a_retry_replaces_what_the_failed_host_had(fleet):
    three_hosts(fleet)
    worker, name = a_worker(fleet), a_name()
    (failed,) = worker.hosts("req-1", [name])
    (host,) = worker.hosts("req-2", [name], ignore_hosts=[failed])
    assert host != failed
    assert fleet.host_of(name) == [host]


def test_the_conductor_claims_an_alternate(fleet):
    three_hosts(fleet)
    worker, name = a_worker(fleet), a_name()
    ((chosen, full, free),) = worker.select("req-1", [name])
    spec = a_request(project_id=PROJECT, user_id=USER)
    alternates = PlacementAlternates(PlacementClient.from_conf(worker.conf))
    context = Context("req-1")
    fleet.take(full.service_host)
    assert not alternates.claim(context, spec, name, full)
    for _delivery in range(2):
        assert alternates.claim(context, spec, name, free)
        # As for a move: it stays where it is until that host says that it has left.
        assert fleet.host_of(name) == sorted([chosen.service_host, free.service_host])
    for _delivery in range(2):
        alternates.leave(context, name, chosen.compute_node_uuid)
        assert fleet.host_of(name) == [free.service_host]
    for _delivery in range(2):
        alternates.leave(context, name, free.compute_node_uuid)
        assert fleet.host_of(name) == []
    assert alternates.claim(context, spec, name, chosen)
    alternates.release(context, name)
    assert fleet.host_of(name) == []
