"""A fleet read from a database, and a plan made of it."""

import json

import pytest

from conductor_stub import server_rows
from scheduler import objects
from scheduler.db import groups, tables
from scheduler.db.database import Database
from scheduler.db.databases import Databases
from scheduler.planning.mover import Mover
from scheduler.planning.plans import Planner
from scheduler.replay import database_fleet
from tests.builders import a_conf
from tests.unit.planning.test_plans import a_uuid
from tests.world import fleet as world

MB = 2048
SIZES = {"memory_mb": MB, "vcpus": 1, "root_gb": 20}


@pytest.fixture
def databases(tmp_path):
    """Two servers of an anti-affinity group and one at work on cmp1, one with cells on cmp2."""
    url = f"sqlite:///{tmp_path}/fleet.sqlite"
    used = {"free_ram_mb": world.MEMORY_MB - 3 * MB, "memory_mb_used": 3 * MB, "running_vms": 3}
    world.install(url, **used, vcpus_used=3)
    database = Database(url)
    cells = {"cells": [{"id": 0, "cpuset": [0], "memory": MB}]}
    with database.write() as conn:
        group = groups.create(conn, "web", "anti-affinity")
        server_rows.join_group(conn, group.uuid, [a_uuid(1), a_uuid(2)])
        for number, host, state in ((1, 1, None), (2, 1, None), (3, 1, "migrating"), (4, 2, None)):
            values = {"uuid": a_uuid(number), "host": f"cmp{host}", "node": f"cmp{host}"}
            instance = objects.Instance(
                **values, **SIZES, project_id="p", vm_state="active", task_state=state
            )
            instance.flavor = world.a_spec(a_uuid(number)).flavor
            server_rows.create_instance(conn, instance)
        has_cells = tables.instance_extra.update().where(
            tables.instance_extra.c.instance_uuid == a_uuid(4)
        )
        conn.execute(has_cells.values(numa_topology=json.dumps(cells)))
        spec = world.a_spec(a_uuid(1), availability_zone=world.ZONE).obj_to_primitive()
        stored = {"instance_uuid": a_uuid(1), "spec": json.dumps(spec)}
        conn.execute(tables.request_specs.insert().values(**stored))
    yield Databases(database)
    database.dispose()


def test_servers_are_read_with_what_they_asked_for(databases):
    fleet, left_out = database_fleet.read(a_conf(), databases)
    assert sorted(fleet.spec_of) == [a_uuid(1), a_uuid(2)]
    assert left_out == {
        a_uuid(3): "it is at work (migrating)",
        a_uuid(4): "it has cells or devices of its own",
    }
    first, second = (fleet.spec_of[a_uuid(number)] for number in (1, 2))
    assert (first.availability_zone, second.availability_zone) == (world.ZONE, None)
    assert first.instance_group.members == [a_uuid(1), a_uuid(2)]


def test_a_plan_obeys_zones_and_groups_of_what_was_read(databases):
    fleet, left_out = database_fleet.read(a_conf(), databases)
    planner = Planner(Mover(fleet), left_out)
    plan = planner.drain(["cmp1"])
    # The first server has to stay in its zone, and the group keeps the second off there.
    assert {move.server: move.target for move in plan.moves} == {
        a_uuid(1): "cmp2",
        a_uuid(2): "cmp3",
    }
    assert [(each.server, each.host, each.reason) for each in plan.stuck] == [
        (a_uuid(3), "cmp1", "it is at work (migrating)")
    ]
    assert plan.reached == 0
