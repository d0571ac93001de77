"""A plan of moves made with a real scheduler and claims, while others ask for hosts."""

import itertools
import time
from concurrent.futures import ThreadPoolExecutor

from scheduler import errors, objects
from scheduler.db import migration
from scheduler.db.database import Database
from scheduler.db.databases import Databases
from scheduler.planning.mover import Mover
from scheduler.planning.plans import Planner
from scheduler.replay import database_fleet
from tests.builders import a_conf
from tests.unit.claims.fleets import GB, Fleet, a_name
from tests.world.bus import a_context, scheduler_api
from tests.world.fleet import a_spec

HOSTS, PER_HOST, SIZE_MB, OTHERS, TRIES = 8, 2, 2 * GB, 6, 4
STACKING = {"ram_weight_multiplier": -1.0}
SETTINGS = {
    "scheduler": {"claims": "database"},
    "DEFAULT": {"service_down_time": 3600},
    "filter_scheduler": STACKING,
}


class Movers:
    """Those who ask the scheduler, for planned moves and for servers of others."""

    def __init__(self, api, fleet):
        self.api, self.fleet = api, fleet
        self.stale, self.wrong, self.others = [], [], []

    def ask(self, name, **fields):
        [[chosen]] = self.api.select_destinations(
            *(a_context(), a_spec(name, **fields), [name]),
            return_objects=True,
            return_alternates=False,
        )
        return chosen.service_host

    def ask_for_another(self, name):
        self.others.append(name)
        assert self.ask(name) in self.fleet.hosts

    def move(self, each):
        target = objects.Destination(host=each.target)
        self.fleet.change(each.server, None, task_state="migrating")
        for _attempt in range(TRIES):
            try:
                assert self.ask(each.server, requested_destination=target) == each.target
            except errors.NoValidHost:
                on_target = self.fleet.promised_and_present()[each.target]
                if sum(on_target.values()) + SIZE_MB > self.fleet.ram_mb:
                    self.stale.append((each.server, on_target.keys() & set(self.others)))
                    return
                # A request in flight had the room, and got another host; or the target's report
                # counts a server that has just come, and is too young to end its claim.
                self.fleet.report_later(each.target)
                continue
            self.fleet.arrive(each.server, each.target)
            self.fleet.change(each.server, each.source)
            return
        self.wrong.append(each)


def test_moves_are_refused_only_where_others_were_faster(
    deployment, transport_url, mariadb_url, tmp_path
):
    database = Database(mariadb_url)
    migration.sync(database)
    fleet = Fleet(database, time.time, HOSTS, 4 * SIZE_MB)
    for host in fleet.hosts * PER_HOST:
        fleet.wait_for_host(name := a_name(), SIZE_MB)
        fleet.arrive(name, host)
    read, left_out = database_fleet.read(a_conf(**STACKING), Databases(database))
    plan = Planner(Mover(read), left_out).free_hosts(HOSTS // 2, 100)
    assert (plan.reached, len(plan.moves)) == (HOSTS // 2, HOSTS)
    deployment(transport_url, mariadb_url, settings=SETTINGS).start_scheduler().wait_ready()
    with scheduler_api(tmp_path, transport_url) as api, ThreadPoolExecutor(4) as callers:
        movers, waves = Movers(api, fleet), plan.waves()
        for wave in waves:
            names = [a_name() for _number in range(OTHERS // len(waves))]
            asking = [callers.submit(movers.ask_for_another, each) for each in names]
            asking += [callers.submit(movers.move, each) for each in wave]
            for each in asking:
                each.result()
    fleet.check()
    assert movers.wrong == []
    assert len(movers.stale) < len(plan.moves)
    assert all(others for _server, others in movers.stale), "nobody was faster"
    held = itertools.chain.from_iterable(fleet.promised_and_present().values())
    assert len(set(held)) == HOSTS * PER_HOST + len(movers.others)
    database.dispose()
