"""Random requests to a real Placement: asking about the chosen host loses nothing to listing all.

``PLACEMENT_FLEETS`` fleets are made, each from its number, and get twenty requests each.  Their
hosts differ in weight and never in room, which only Placement counts.
"""

import os
import random
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from scheduler import errors, objects
from scheduler.db import migration
from scheduler.db.database import Database
from tests.functional.placement_fleet import MB, Fleet, Worker, a_name

FLEETS = int(os.environ.get("PLACEMENT_FLEETS", "2"))
REQUESTS, HOSTS = 20, 9
TRAITS = ("CUSTOM_RED", "CUSTOM_BLUE", "HW_CPU_HYPERTHREADING")
THING, CARD, FAST_CARD = "CUSTOM_THING", "CUSTOM_CARD", "CUSTOM_FAST_CARD"
POLICY = {
    "enabled_filters": ["ComputeFilter", "DifferentHostFilter"],
    "weight_classes": ["scheduler.weights.hypervisor_version.HypervisorVersionWeigher"],
}
#: More attempts than hosts: the alternates are all hosts that Placement grants.
ALL = {"max_attempts": HOSTS + 1, "placement_query": "fleet"}


class World:
    """A random fleet, its workers and what can be asked of it."""

    def __init__(self, fleet, rng):
        self._fleet, self._placement, self._rng = fleet, fleet.placement, rng
        self._held = []
        self.providers = []
        self.aggregates = [a_name() for _ in range(3)]
        self.has_shared_disk = rng.random() < 0.4
        weights = enumerate(rng.sample(range(99), HOSTS))
        self.weights = {f"w{number}": weight for number, weight in weights}
        if self.has_shared_disk:
            self._provider({"DISK_GB": 40}, ["MISC_SHARES_VIA_AGGREGATE"], self.aggregates[:1])
        for host, weight in self.weights.items():
            report = {"hypervisor_version": weight, "memory_mb": 9 * MB, "free_ram_mb": 9 * MB}
            node = fleet.add(host, report=report, **self._described())
            self.providers.append(node)
            for _ in range(rng.choice((0, 0, 1, 2))):
                traits = [FAST_CARD] * rng.randrange(2)
                self._provider({CARD: rng.randrange(1, 3)}, traits, parent=node)

    def _provider(self, *what, **more):
        self.providers.append(a_name())
        self._placement.add_node(self.providers[-1], *what, **more)

    def _described(self):
        rng = self._rng
        inventory = {
            "VCPU": rng.choice((2, 8)),
            "MEMORY_MB": {"total": MB, "max_unit": rng.choice((MB // 2, MB)), "reserved": 256},
            "DISK_GB": 0 if self.has_shared_disk and rng.random() < 0.6 else rng.choice((5, 50)),
            "PCPU": rng.choice((0, 0, 4)),
            THING: rng.choice((0, 0, 1, 3)),
        }
        traits = [each for each in TRAITS if rng.random() < 0.4]
        if rng.random() < 0.1:
            traits.append("COMPUTE_STATUS_DISABLED")
        aggregates = [each for each in self.aggregates if rng.random() < 0.5]
        return {"inventory": inventory, "traits": traits, "aggregates": aggregates}

    def request(self):
        rng = self._rng
        specs, how = dict[str, str](), dict[str, Any]()
        aspects = [
            lambda: specs.update({f"trait:{rng.choice(TRAITS)}": "required"}),
            lambda: specs.update({f"trait:{rng.choice(TRAITS)}": "forbidden"}),
            lambda: specs.update({f"resources:{THING}": str(rng.randrange(1, 3))}),
            lambda: specs.update({f"resources1:{CARD}": str(rng.randrange(1, 3))}),
            lambda: specs.update({f"resources1:{CARD}": "1", f"trait1:{FAST_CARD}": "required"}),
            lambda: specs.update(
                {f"resources_A:{CARD}": "1", f"resources_B:{CARD}": "1"}
                | {"group_policy": rng.choice(("none", "isolate"))}
            ),
            lambda: specs.update({"resources:PCPU": "2", "resources:VCPU": "0"}),
            lambda: how.update(requested_destination=self._destination()),
            lambda: how.update(ignore_hosts=rng.sample(sorted(self.weights), 2)),
            lambda: how.update(force_hosts=rng.sample(sorted(self.weights), 2)),
            lambda: how.update(image={"traits_required": [rng.choice(TRAITS)]}),
            lambda: how.update(request_level_params=self._level()),
        ]
        for add in rng.sample(aspects, rng.choice((0, 1, 1, 2, 3))):
            add()
        flavor = {"vcpus": rng.choice((1, 2)), "root_gb": rng.choice((0, 1, 10))}
        return {
            "ram_mb": rng.choice((256, 1024, 3000)),
            "extra_specs": specs,
            "flavor": flavor,
        } | how

    def _destination(self):
        rng = self._rng
        sets = [
            rng.sample(self.aggregates, rng.choice((1, 2))) for _ in range(rng.choice((1, 1, 2)))
        ]
        without = rng.sample(self.aggregates, rng.choice((0, 0, 1)))
        return objects.Destination(
            aggregates=[",".join(each) for each in sets[: rng.choice((1, 1, 2))]],
            forbidden_aggregates=without,
        )

    def _level(self):
        name = self._rng.choice(("root_required", "root_forbidden"))
        return objects.RequestLevelParams(**{name: {self._rng.choice(TRAITS)}})

    def ask(self, worker, how, count):
        """The hosts for so many servers, which hold them from now on; none if refused."""
        names = [a_name() for _ in range(count)]
        try:
            answer = worker.select(f"req-{names[0]}", names, **how)
        except errors.NoValidHost:
            assert not any(map(self._fleet.host_of, names))
            return []
        finally:
            worker.learn()  # now, not while the other worker holds room that it gives back
        chosen = [row[0].service_host for row in answer]
        assert [self._fleet.host_of(each) for each in names] == [[host] for host in chosen]
        self._held += names
        return [[each.service_host for each in row] for row in answer]

    def take_back(self, most):
        """Delete the allocations of the latest servers, at *most* so many."""
        for each in self._held[-most:] if most else ():
            self._placement.call("DELETE", f"/allocations/{each}")
        del self._held[len(self._held) - most :]

    def forget(self):
        """Take all of it out of Placement, which other tests use."""
        self.take_back(len(self._held))
        for each in reversed(self.providers):
            self._placement.call("DELETE", f"/resource_providers/{each}")


@contextmanager
def a_world(placement, folder, number):
    placement.call("PUT", f"/resource_classes/{THING}")
    placement.call("PUT", f"/resource_classes/{CARD}")
    placement.call("PUT", f"/traits/{FAST_CARD}")
    with ExitStack() as ending:
        database = Database(f"sqlite:///{folder}/{number}.sqlite")
        ending.callback(database.dispose)
        migration.sync(database)
        fleet = Fleet(database, placement)
        world = World(fleet, random.Random(number))
        ending.callback(world.forget)
        yield world, fleet


@pytest.mark.parametrize("number", sorted({*range(FLEETS), 4}))  # 4: listed beside own claims
def test_the_chosen_host_is_the_best_that_placement_grants(placement_server, tmp_path, number):
    """Memory is at work, as room only gets less; a list that is cut off may lack the best."""
    rng = random.Random(-1 - number)
    limits = {"placement_refusals": (1, 3, 5), "max_placement_results": (2, 99)}
    few = {name: rng.choice(values) for name, values in limits.items()}
    with a_world(placement_server, tmp_path, number) as (world, fleet):
        settings = placement_server.settings
        chosen = Worker(fleet.database, settings, POLICY, **few)
        listing = Worker(fleet.database, settings, POLICY, **ALL)
        for turn in range(REQUESTS):
            how, count = world.request(), rng.choice((1, 1, 1, 2, 3))
            asked = f"PLACEMENT_FLEETS: fleet {number}, turn {turn}: {count} of {how}"
            granted = world.ask(listing, how, count)
            world.take_back(len(granted))
            got = world.ask(chosen, how, count)
            assert bool(got) == bool(granted), asked
            hosts, best = ([row[0] for row in each] for each in (got, granted))
            weights = [sorted(map(world.weights.__getitem__, each)) for each in (hosts, best)]
            is_best = all(a >= b for a, b in zip(*weights, strict=True))
            assert is_best or few["max_placement_results"] < HOSTS, (asked, hosts, best)
            assert count > 1 or not got or {hosts[0]} <= set(granted[0]), (asked, granted)
