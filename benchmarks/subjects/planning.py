"""Plans that free hosts, on a fleet in memory; timed by the processor time of this process."""

import itertools
import random
import time
from collections.abc import Sequence

from benchmarks import configuration
from benchmarks.requests import request_uuid
from benchmarks.sample import Sample
from benchmarks.session import Session
from benchmarks.workload import Settings
from scheduler import objects
from scheduler.planning.mover import Mover
from scheduler.planning.plans import Planner
from scheduler.replay.virtual_fleet import VirtualFleet
from scheduler.replay.workload import flavor_of

SIZES = ("1/1/10", "1/2/10", "2/4/10")
#: Servers that are placed by one request.
TOGETHER = 100
STACKING = {"ram_weight_multiplier": -1.0, "cpu_weight_multiplier": -1.0}


class FreedHosts:
    """Hosts of one size, filled to four fifths by ``servers``; ``free`` of them are emptied."""

    def __init__(self, settings: Settings, session: Session) -> None:
        del session
        hosts, servers = settings["hosts"], settings["servers"]
        per_host = servers // hosts
        conf = configuration.in_process({"driver": "filter_scheduler"})
        text = f"{hosts} × 64 cores/{3 * per_host} GiB/{40 * per_host} GB, 3 zones"
        fleet = VirtualFleet.from_description(conf, text)
        flavors = [flavor_of(each, number) for number, each in enumerate(SIZES, 1)]
        draws = random.Random(1)
        uuids = map(request_uuid, range(servers))
        while several := list(itertools.islice(uuids, TOGETHER)):
            spec = objects.RequestSpec(flavor=draws.choice(flavors), num_instances=len(several))
            fleet.finish_builds(fleet.place(spec, several).servers)
        options = {"filter_scheduler": STACKING}
        self._fleet = fleet
        self._conf = configuration.in_process({"driver": "filter_scheduler", "options": options})
        self._free = settings["free"]
        self._servers = servers

    def warm_up(self) -> None:
        """Nothing: one plan is as long as another."""

    def round(self, seconds: float) -> Sample:
        """Plan once, on a copy of the fleet."""
        del seconds
        planner = Planner(Mover(self._fleet.copy(self._conf)), {})
        began = time.process_time()
        plan = planner.free_hosts(self._free, self._servers)
        took = time.process_time() - began
        assert plan.reached == self._free
        return Sample([took], took, 1, [plan.reached], {"moves": float(len(plan.moves))})

    def pids(self) -> Sequence[int]:
        """None but this process."""
        return ()

    def close(self) -> None:
        """Nothing is open."""
