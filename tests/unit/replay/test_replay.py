"""Workloads on fleets: measures worked out by hand, groups, comparisons, sizes."""

import functools
import math

import pytest

from scheduler import objects
from scheduler.introspection.what_if import Overlay, values_of
from scheduler.replay import measures, sizing
from scheduler.replay.measures import Room
from scheduler.replay.run import Run, play
from scheduler.replay.virtual_fleet import VirtualFleet
from scheduler.replay.workload import Arrival, Workload, a_flavor
from tests.builders import a_conf

SMALL, LARGE = a_flavor("small", 1, 2, 4096), a_flavor("large", 2, 8, 8192)
NO_OVERCOMMIT = ["cpu_allocation_ratio=1", "ram_allocation_ratio=1", "semantics=newton"]
CORES = "enabled_filters=CoreFilter,RamFilter,ComputeFilter"


def a_fleet(text, *settings, filters=CORES):
    values = values_of([*NO_OVERCOMMIT, filters, *settings])
    return VirtualFleet.from_description(Overlay.from_values(a_conf(), values), text)


def an_arrival(at, flavor=SMALL, count=1, life=math.inf, **more):
    return Arrival(f"at {at:g}", at, flavor, (life,) * count, **more)


def test_measures_of_a_fleet_half_used():
    fleet = a_fleet("2 × 8 cores/16 GiB/10 GB")
    run = Run(fleet)
    play(run, [an_arrival(0, LARGE), an_arrival(1, count=3)])
    room = Room.from_table(fleet.table)
    found = measures.occupancy(room)
    assert found["allocated_share"] == {"cores": 14 / 16, "memory": 0.625, "disk": 0.0}
    assert found["empty_hosts"] == 0
    stranded = measures.stranding(room, {(2, 4096, 0): 1}, 1)
    assert stranded == {"cores": 0.0, "memory": 0.25, "disk": 1.0}
    mix = {(2, 4096, 0): 3, (8, 8192, 0): 1}
    assert measures.fragment_rate(room, mix)["cores"] == 0.25


def test_disabled_hosts_are_no_capacity_and_empty_ones_count():
    fleet = a_fleet("3 × 8 cores/16 GiB")
    fleet.set_disabled("host-3")
    play(Run(fleet), [an_arrival(0)])
    found = measures.occupancy(Room.from_table(fleet.table))
    assert found["allocated_share"]["cores"] == 0.125
    assert found["packing_density"]["cores"] == 0.25
    assert (found["empty_hosts"], found["empty_host_share"]) == (1, 0.5)


def test_servers_end_and_refusals_are_counted_and_explained():
    run = Run(a_fleet("1 × 8 cores/64 GiB"))
    arrivals = [
        *(an_arrival(0, LARGE, life=100), an_arrival(50, count=2), an_arrival(150, LARGE)),
        an_arrival(7300, LARGE),
    ]
    play(run, arrivals)
    found = run.result()
    assert (found["requests"], found["servers"], found["requests_refused"]) == (4, 5, 2)
    assert list(found["failure_rate_by_flavor"]) == ["small", "large"]  # by size
    assert found["failure_rate_by_flavor"]["small"]["failure_rate"] == 1.0
    assert found["failure_rate_by_flavor"]["large"]["servers_refused"] == 1
    assert [each["request"] for each in found["worst_refusals"]] == ["at 50", "at 7300"]
    assert "CoreFilter" in found["worst_refusals"][0]["because"]
    assert [each["at"] for each in found["series"]] == [3600, 7200, 7300]
    assert found["mean"]["allocated_share"]["cores"] == 1.0


def test_nothing_counts_before_the_warm_up_is_over():
    run = Run(a_fleet("1 × 8 cores/64 GiB"), warm_up_seconds=4000)
    play(run, [an_arrival(0, LARGE, life=7000), an_arrival(10), an_arrival(5000), an_arrival(7300)])
    found = run.result()
    assert (found["requests"], found["requests_refused"]) == (2, 1)
    assert [each["servers"] for each in found["series"]] == [1, 0, 1]
    assert found["mean"]["servers"] == 0.5


def test_recorded_requests_without_sizes_and_those_that_are_refused_as_wrong():
    bare = objects.Flavor(id=3, name="bare")
    run = Run(a_fleet("1 × 8 cores/64 GiB"))
    wrong = an_arrival(1, bare, spec=objects.RequestSpec(num_instances=1))
    sized = objects.RequestSpec(flavor=LARGE, num_instances=1)
    play(run, [an_arrival(0, bare, spec=sized), wrong])
    found = run.result()
    assert (found["requests"], found["requests_refused"]) == (2, 1)
    (refused,) = found["worst_refusals"]
    assert refused["because"].startswith("Invalid request: RequestSpec.flavor")


@pytest.mark.parametrize("semantics", ["newton", "current"])
def test_groups_and_zones_are_kept(semantics):
    filters = "enabled_filters=AvailabilityZoneFilter,ServerGroupAntiAffinityFilter"
    fleet = a_fleet("4 × 8 cores/16 GiB, 2 zones", f"semantics={semantics}", filters=filters)
    run = Run(fleet)
    many = [an_arrival(at, group="anti-affinity:web", zone="zone-1", life=60) for at in range(3)]
    assert [run_one(run, each) for each in many] == [["host-1"], ["host-3"], []]
    assert run_one(run, an_arrival(100, group="anti-affinity:web", count=4)) == [
        *("host-1", "host-2", "host-3", "host-4")
    ]
    assert run_one(run, an_arrival(100, group="anti-affinity:all", count=5)) == []
    outcome = run.ask(an_arrival(100, group="anti-affinity:db", count=4))
    assert run.explain_again(outcome).startswith("host-1, host-2, host-3, host-4 were chosen")


def test_members_of_a_recorded_group_are_where_they_are_placed_here():
    run = Run(a_fleet("4 × 8 cores/16 GiB", filters="enabled_filters=ServerGroupAffinityFilter"))

    def recorded(at, uuid, hosts):
        group = objects.InstanceGroup(policy="affinity", members=["u1", "u2"], hosts=hosts)
        spec = objects.RequestSpec(flavor=SMALL, num_instances=1, instance_group=group)
        return an_arrival(at, spec=spec, uuids=[uuid])

    first = run_one(run, recorded(0, "u1", []))
    assert run_one(run, recorded(1, "u2", ["host-4"])) == first == ["host-1"]
    assert run_one(run, recorded(2, "u1", ["host-4"])) == first  # moved, to its group


def run_one(run, arrival):
    run.go_to(arrival.at)
    return [each.key[0] for each in run.ask(arrival).servers]


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_smallest_fleet_and_the_largest_workload(jobs):
    fleet = a_fleet("10 × 8 cores/16 GiB")
    workload = Workload("a day", [an_arrival(at, LARGE, life=1000) for at in range(4)])
    subject = sizing.Subject(fleet, workload, 0, 1)
    found = sizing.distribution(list(sizing.trials(sizing.compact, subject, 3, jobs)), 5)
    sizes = {"least": 4, "median": 4, "most": 4, "trials": [4, 4, 4]}
    assert found == {**sizes, "at_least": False}
    for times in sizing.trials(sizing.inflate, subject, 2, jobs):
        assert 2.5 <= times <= 2.75
    assert len(fleet.table) == 10
    assert not fleet.table.host_of_instance


def test_what_is_refused_before_the_warm_up_is_over_makes_no_fleet_too_small():
    fleet = a_fleet("10 × 8 cores/16 GiB")
    workload = Workload("a day", [an_arrival(0, LARGE, count=11), an_arrival(100, LARGE)])
    new_run = functools.partial(Run, warm_up_seconds=60.0)
    assert sizing.compact(sizing.Subject(fleet, workload, 0, 1, new_run), 0, None) == 1


def test_servers_that_a_recording_names_are_others_where_it_is_inflated():
    fleet, spec = a_fleet("4 × 8 cores/16 GiB"), objects.RequestSpec(flavor=LARGE, num_instances=1)
    recorded = [an_arrival(at, LARGE, spec=spec, uuids=[f"u{at}"]) for at in range(2)]
    assert sizing.inflate(sizing.Subject(fleet, Workload("a day", recorded), 0, 1), 0, None) < 3
