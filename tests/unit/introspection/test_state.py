"""A worker's state host by host, and read again."""

import pytest
import sqlalchemy

from scheduler import errors, objects
from scheduler.db.tables import compute_nodes
from scheduler.introspection import state
from tests.unit.introspection.subjects import a_world
from tests.world import fleet, random_fleets
from tests.world.fleet import a_spec

#: A server with a cell of its own.
GUEST = objects.InstanceNUMATopology(
    cells=[objects.InstanceNUMACell(id=0, cpuset={0}, pcpuset=set(), memory=2048)]
)


@pytest.fixture
def world(tmp_path):
    with a_world(tmp_path, hosts=5) as made:
        yield made


def place(world, uuid, **fields):
    """Have the worker promise a host to a server; its name."""
    spec = a_spec(uuid, **fields)
    (chosen,) = world.subject.manager.select_destinations(
        None, spec_obj=spec, instance_uuids=[uuid]
    )
    name = chosen["host"]
    return name


def behind_the_back(world, host, **values):
    """Change a row such that no read of changes can tell."""
    update = sqlalchemy.update(compute_nodes).where(compute_nodes.c.host == host)
    with world.database.write() as connection:
        connection.execute(update.values(**values))


def of_host(world, host):
    (found,) = state.state_hosts(world.subject, hosts=[host])["hosts"]
    return dict(found)


def test_numbers_follow_what_the_worker_knows_and_promises(world):
    names = ("hosts", "up", "disabled", "open_picks")
    before = state.state_summary(world.subject)
    place(world, "u1")
    after = state.state_summary(world.subject)
    assert [before[name] for name in names] == [5, 5, 0, 0]
    assert [after[name] for name in names] == [5, 5, 0, 1]
    assert after["instances"] == before["instances"] + 1
    assert 0 <= after["state_age_seconds"] < 60


@pytest.mark.parametrize("value", ["cmp1", [1], ["cmp1"] * 501])
def test_what_are_no_names_of_hosts_is_refused(world, value):
    with pytest.raises(errors.InvalidRequest, match="hosts"):
        state.state_hosts(world.subject, hosts=value)


def test_reservations_show_beside_what_the_host_reported(world):
    found = of_host(world, place(world, "u1"))
    values, reported = found["values"], found["reported"]
    assert reported["free_ram_mb"] - values["free_ram_mb"] == 2048
    assert (reported["instances"], values["instances"]) == ([], ["u1"])
    amounts = {"free_ram_mb", "free_disk_mb", "vcpus_used", "num_instances", "num_io_ops"}
    assert reported.keys() == {*amounts, "instances"}


def test_a_host_that_is_not_there_is_named_with_the_nearest(world):
    answer = state.state_hosts(world.subject, hosts=["cnp1", "nothing-like-it", "cmp2"])
    assert [each["host"] for each in answer["hosts"]] == ["cmp2"]
    assert answer["unknown"] == {"cnp1": "cmp1", "nothing-like-it": None}


def test_cells_that_a_promise_took_show_as_they_were_reported(world):
    behind_the_back(world, "cmp1", numa_topology=random_fleets.TOPOLOGY)
    state.state_refresh(world.subject)
    spec = a_spec("u1", force_hosts=["cmp1"], numa_topology=GUEST)
    world.subject.manager.select_destinations(None, spec_obj=spec, instance_uuids=["u1"])
    found = of_host(world, "cmp1")
    assert found["values"]["numa_topology"] != random_fleets.TOPOLOGY
    assert found["reported"]["numa_topology"] == random_fleets.TOPOLOGY


def test_a_full_read_says_what_it_repaired(world):
    place(world, "u1")
    untouched = state.state_refresh(world.subject)
    assert (untouched["repaired"], untouched["repairs"]) == (0, [])
    table = world.subject.host_manager.table
    table.update(table.rows["cmp2", "cmp2"], {"total_usable_ram_mb": 1})
    table.remove(("cmp3", "cmp3"))
    answer = state.state_refresh(world.subject)
    told = {(each["host"], each["column"]): each["database"] for each in answer["repairs"]}
    assert told == {("cmp2", "total_usable_ram_mb"): fleet.MEMORY_MB, ("cmp3", "(host)"): "present"}
    assert (answer["repaired"], answer["hosts"]) == (2, 5)
    assert state.state_refresh(world.subject)["repaired"] == 0


def test_no_state_is_read_while_the_database_is_away(world, monkeypatch):
    manager = world.subject.host_manager

    def fail(*_given, **_how):
        raise sqlalchemy.exc.OperationalError("select", {}, Exception("away"))

    monkeypatch.setattr(manager._reader, "read", fail)
    with pytest.raises(errors.StateUnavailable, match="does not answer"):
        state.state_refresh(world.subject)
    assert of_host(world, "cmp1")
