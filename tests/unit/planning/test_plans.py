"""Plans of moves on fleets in memory: what is emptied, what fits, and every state on the way."""

import itertools
import os
import random
from collections import Counter

import pytest

from scheduler import errors, objects
from scheduler.planning.mover import Mover
from scheduler.planning.moves import Move, Plan, wave_numbers
from scheduler.planning.plans import Planner
from scheduler.replay.virtual_fleet import VirtualFleet
from tests.builders import a_conf, a_request

GB = 1024
EXAMPLES = 20 * int(os.environ.get("EXAMPLES_TIMES", "1"))
ZONES = "AvailabilityZoneFilter"
STACKING = {"ram_weight_multiplier": -1.0}


def a_uuid(number):
    return f"00000000-0000-4000-b000-{number:012}"


class World:
    """Hosts of 8 GiB with servers of so many GiB each."""

    def __init__(self, *hosts, group=None, **options):
        text = f"{len(hosts)} × 64 cores/8 GiB/1000 GB"
        self.fleet = VirtualFleet.from_description(a_conf(**options), text)
        self.names = list(self.fleet.table.rows_of_host)
        numbers = itertools.count(1)
        uuids = [a_uuid(next(numbers)) for host in hosts for _server in host]
        self.group = {"policy": group, "members": uuids, "hosts": []} if group else None
        mine = iter(uuids)
        for name, sizes in zip(self.names, hosts, strict=True):
            for size in sizes:
                spec = self.a_spec(size)
                spec.force_hosts = [name]
                spec.requested_destination = objects.Destination(host=name)
                placed = self.fleet.place(spec, [next(mine)])
                assert not placed.is_refused
                self.fleet.finish_builds(placed.servers)

    def a_spec(self, gigabytes):
        flavor = {"memory_mb": gigabytes * GB, "vcpus": 1, "root_gb": 1, "ephemeral_gb": 0}
        return a_request(flavor=flavor, group=self.group)

    def planner(self, seconds=60):
        return Planner(Mover(self.fleet, seconds), {})

    def fill(self, host, gigabytes):
        """Take so much more of *host* than it has."""
        self.fleet.table.add(self.fleet.table.row_numbers([host]), {"free_ram_mb": -gigabytes * GB})

    def loads(self):
        table = self.fleet.table
        rows = [table.row_numbers([name])[0] for name in self.names]
        return [8 - int(table.column("free_ram_mb")[row]) // GB for row in rows]


def loads_after(world, before, plan):
    """No host is over its memory, while servers of one wave are on both of their hosts."""
    loads = dict(zip(world.names, before, strict=True))
    for wave in plan.waves():
        for move in wave:
            loads[move.target] += move.memory_mb // GB
        assert max(loads.values()) <= 8
        for move in wave:
            loads[move.source] -= move.memory_mb // GB
    return list(loads.values())


def test_a_host_is_drained_and_each_server_has_a_new_host():
    world = World([3, 2], [4], [5])
    before = world.loads()
    world.fleet.spec_of[a_uuid(2)].scheduler_hints = {"different_host": [a_uuid(1)]}
    plan = world.planner().drain(["host-1"])
    assert len(plan.waves()) == 2
    assert plan.reached == plan.wanted == 1
    assert plan.stuck == []
    assert world.loads()[0] == 0
    assert Counter(move.source for move in plan.moves) == {"host-1": 2}
    assert plan.before["empty_hosts"] == 0
    assert plan.after["empty_hosts"] == 1
    assert loads_after(world, before, plan) == world.loads()


def test_room_is_made_where_a_drained_server_fits_nowhere():
    world = World([6], [4], [3, 2])
    for spec in world.fleet.spec_of.values():
        del spec.flavor.root_gb  # stored without it
    before = world.loads()
    plan = world.planner().drain(["host-1"])
    assert [(move.memory_mb // GB, move.source) for move in plan.moves[-1:]] == [(6, "host-1")]
    assert plan.stuck == []
    assert len(plan.waves()) == 2
    assert loads_after(world, before, plan) == world.loads()


def test_what_cannot_move_is_named_with_the_reason():
    world = World([6], [8], [8])
    plan = world.planner().drain(["host-1"])
    assert plan.moves == []
    assert plan.reached == 0
    [stuck] = plan.stuck
    assert (stuck.server, stuck.host) == (a_uuid(1), "host-1")
    assert "RamFilter" in stuck.reason


def test_a_host_that_is_not_there_is_named():
    with pytest.raises(errors.InvalidRequest, match="host-9"):
        World([1]).planner().drain(["host-9"])


@pytest.mark.parametrize(
    ("hosts", "size", "count", "moves", "reached"),
    [
        ([[4], [4]], 4, 2, 0, 2),
        ([[2], [2, 3], [2, 3]], 7, 1, 1, 1),
        ([[4], [4]], 8, 1, 1, 1),
        ([[4], [4]], 8, 2, 1, 1),
        ([[5], [5]], 8, 1, 0, 0),
        ([[3, 3], [3, 3], [2]], 8, 1, 1, 1),
    ],
)
def test_room_for_a_flavor(hosts, size, count, moves, reached):
    world = World(*hosts)
    before = world.loads()
    plan = world.planner().fit(world.a_spec(size), count)
    assert (len(plan.moves), plan.reached) == (moves, reached)
    assert bool(plan.stuck) == (reached < count)
    assert loads_after(world, before, plan) == world.loads()


def most_empty(hosts):
    """The most hosts that can be empty, by trying everything: servers are packed into few bins."""
    sizes = sorted(itertools.chain.from_iterable(hosts), reverse=True)

    def packs(bins):
        def place(number, free):
            if number == len(sizes):
                return True
            return any(
                place(
                    number + 1, tuple(sorted((*free[:at], room - sizes[number], *free[at + 1 :])))
                )
                for at, room in enumerate(free)
                if room >= sizes[number] and room not in free[:at]
            )

        return place(0, (8,) * bins)

    return next(len(hosts) - bins for bins in range(len(hosts) + 1) if packs(bins))


def test_hosts_are_freed_nearly_as_often_as_is_possible():
    draws = random.Random(2016)
    freed = possible = 0
    for _example in range(EXAMPLES):
        hosts = [[draws.randint(1, 4) for _server in range(draws.randint(0, 3))] for _h in range(6)]
        hosts = [host if sum(host) <= 8 else host[:2] for host in hosts]
        world = World(*hosts, **STACKING)
        before = world.loads()
        plan = world.planner().free_hosts(len(hosts), 100)
        assert loads_after(world, before, plan).count(0) == before.count(0) + plan.reached
        freed += plan.after["empty_hosts"]
        possible += most_empty(hosts)
    assert freed >= 0.95 * possible


def test_no_server_is_moved_twice_for_nothing():
    plan = World(*[[2, 2]] * 8, **STACKING).planner().free_hosts(4, 100)
    assert (plan.reached, len(plan.moves)) == (4, 8)


def test_no_more_moves_than_allowed_and_cheap_hosts_first():
    world = World([1, 1, 1], [2], [1, 1], [1], **STACKING)
    plan = world.planner().free_hosts(3, 2)
    assert plan.reached == 2
    assert {move.source for move in plan.moves} == {"host-2", "host-4"}


def test_hosts_freed_before_the_time_was_over_are_kept():
    world = World([1, 1], [1, 1], [1, 1], [1, 1], **STACKING)
    mover = Mover(world.fleet, 3, itertools.count().__next__)
    plan = Planner(mover, {}).free_hosts(3, 10)
    assert plan.is_cut_off
    assert (plan.reached, len(plan.moves), world.loads().count(0)) == (1, 2, 1)


def test_a_search_for_broken_rules_ends_in_time_and_leaves_all_as_it_was():
    world = World([1, 1], group="anti-affinity")
    before = world.loads()
    plan = world.planner(seconds=-1).rules()
    assert plan.is_cut_off
    assert world.loads() == before


@pytest.mark.parametrize("policy", ["anti-affinity", "affinity"])
def test_broken_rules_of_groups_are_found_and_mended(policy):
    hosts = [[1, 1], []] if policy == "anti-affinity" else [[1], [1]]
    world = World(*hosts, group=policy)
    plan = world.planner().rules()
    assert plan.wanted >= 1
    assert plan.stuck == []
    table = world.fleet.table
    homes = {table.host_of_instance[a_uuid(n)] for n in (1, 2)}
    assert len(homes) == (2 if policy == "anti-affinity" else 1)
    assert all(policy.partition("-")[0] in move.reason.lower() for move in plan.moves)
    assert not any("not_offered" in move.reason for move in plan.moves)  # no Placement is asked
    assert world.planner().rules().moves == []


def test_only_rules_are_broken():
    world = World(*[[1, 1]] * 6, [8], enabled_filters=["RamFilter", "ComputeFilter", ZONES])
    fleet, alike = world.fleet, world.a_spec(1)
    fleet.spec_of.update(dict.fromkeys(map(a_uuid, range(1, 13)), alike))
    world.fill("host-7", 1)  # over its memory: a load, and no rule
    fleet.set_disabled("host-6")
    assert world.planner().rules().wanted == 0
    alike.availability_zone = "elsewhere"
    plan = world.planner().rules()
    assert (plan.wanted, len(plan.stuck)) == (12, 12)
    assert all(ZONES in each.reason for each in plan.stuck)


def test_moves_wait_for_those_that_make_their_room():
    def a_move(server, source, target, group=None):
        return Move(server, source, target, 1, 1, 1, "", (), group)

    moves = [
        a_move("a", "1", "2"),
        a_move("b", "3", "4"),
        a_move("c", "5", "1"),
        a_move("d", "6", "5", "g"),
        a_move("e", "7", "8", "g"),
        a_move("a", "2", "9"),
    ]
    assert wave_numbers(moves) == [0, 0, 1, 2, 3, 1]


def test_shell_lines_wait_for_each_wave():
    moves = [Move("a", "1", "2; ls", 1, 1, 1, ""), Move("c", "5", "1", 1, 1, 1, "")]
    command = "openstack server migrate --live-migration --host"
    assert list(Plan("drain", 1, moves=moves).shell()) == [
        "# Wave 1: wait until all of it are done",
        f"{command} '2; ls' --wait a &",
        "wait",
        "# Wave 2: wait until all of it are done",
        f"{command} 1 --wait c &",
        "wait",
    ]
