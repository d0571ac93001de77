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


def test_moves_are_refused_only_where_others_were_faster(
    deployment, transport_url, mariadb_url, tmp_path
):
    database = Database(mariadb_url)
    migration.sync(database)
    fleet = Fleet(database, time.time, HOSTS, 4 * SIZE_MB)
    for host in fleet.hosts * PER_HOST:
        fleet.wait_for_host(name := a_name(), SIZE_MB)
        fleet.arrive(name, host)
    read = database_fleet.read(a_conf(**STACKING), Databases(database))
    plan = Planner(Mover(read.fleet), read.left_out).free_hosts(HOSTS // 2, 100)
    assert (plan.reached, len(plan.moves)) == (HOSTS // 2, HOSTS)
    deployment(transport_url, mariadb_url, settings=SETTINGS).start_scheduler().wait_ready()
    stale, wrong, others = [], [], []
    with scheduler_api(tmp_path, transport_url) as api, ThreadPoolExecutor(4) as callers:

        def ask(name, **fields):
            spec = a_spec(name, **fields)
            [[chosen]] = api.select_destinations(
                a_context(), spec, [name], return_objects=True, return_alternates=False
            )
            return chosen.service_host

        def move(each):
            target = objects.Destination(host=each.target)
            for _attempt in range(TRIES):
                try:
                    assert ask(each.server, requested_destination=target) == each.target
                except errors.NoValidHost:
                    on_target = fleet.promised_and_present()[each.target]
                    if sum(on_target.values()) + SIZE_MB > fleet.ram_mb:
                        stale.append((each.server, on_target.keys() & set(others)))
                        return
                    continue  # a request in flight had the room, and got another host
                fleet.arrive(each.server, each.target)
                fleet.change(each.server, each.source)
                return
            wrong.append(each)

        waves = plan.waves()
        for wave in waves:
            asking = [others.append(name := a_name()) or callers.submit(ask, name)
                      for _number in range(OTHERS // len(waves))]  # fmt: skip
            for done in [*callers.map(move, wave), *(each.result() for each in asking)]:
                assert done is None or done in fleet.hosts
    fleet.check()
    assert wrong == []
    assert len(stale) < len(plan.moves)
    assert all(others for _server, others in stale), "a move was refused though nobody was faster"
    held = itertools.chain.from_iterable(fleet.promised_and_present().values())
    assert len(set(held)) == HOSTS * PER_HOST + len(others)
    database.dispose()
