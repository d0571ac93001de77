"""A conductor on the databases of a Nova: every instance is in that of its cell."""

import pytest

from conductor_stub import server_rows
from scheduler.db import groups, instances
from scheduler.db.database import Database
from scheduler.db.databases import Databases, list_cells
from tests.novas import Nova
from tests.unit.conductor_stub import builders
from tests.unit.conductor_stub.conftest import Conductor
from tests.unit.conductor_stub.driving import build, start, tried, wanted_of

CELLS = ("cell0", "a", "b")


class Cells:
    """Cells a and b with the hosts a1 and b1, and a conductor on them."""

    def __init__(self, nova, databases):
        self.nova = nova
        self.ids = {each.name: each.id for each in nova.change("api", list_cells)}
        self.conductor = Conductor(databases.main, databases=databases)
        for host, cell in (("a1", "a"), ("b1", "b")):
            nova.change("api", server_rows.create_host_mappings, [host], self.ids[cell])

    def wanted(self, count):
        made = [builders.instance(number) for number in range(count)]
        for each in made:
            self.nova.change("api", server_rows.create_build_request, each)
        return [wanted_of(each) for each in made]

    def put(self, number, cell, **changes):
        """An instance that is in a cell already."""
        made = builders.instance(number, **changes)
        self.nova.change(cell, instances.create, made)
        self.nova.change("api", server_rows.create_build_request, made)
        self.nova.change("api", server_rows.delete_build_request, made.uuid)
        self.nova.change("api", server_rows.set_instance_cell, made.uuid, self.ids[cell])
        return made

    def where(self, uuid):
        """The cells in whose database the instance is, its state there, and its mapping."""
        found = {
            name: [each.vm_state for each in self.nova.change(name, instances.list_all)]
            for name in CELLS
            if self.nova.change(name, instances.list_all, uuids=[uuid])
        }
        return found, self.nova.change("api", server_rows.get_instance_mapping, uuid).cell_id


@pytest.fixture
def cells(make_url):
    nova = Nova(make_url)
    nova.add_cell("a", ["a1"])
    nova.add_cell("b", ["b1"])
    databases = Databases(Database(nova.urls["cell0"]), Database(nova.urls["api"]))
    yield Cells(nova, databases)
    databases.dispose()


def test_servers_are_where_their_hosts_are(cells):
    conductor, wanted = cells.conductor, cells.wanted(3)
    conductor.scheduler.answer = [[builders.selection(name)] for name in ("b1", "a1")]
    start(conductor, wanted)
    first, second, hostless = (each.instance_uuid for each in wanted)
    assert cells.where(first) == ({"b": ["building"]}, cells.ids["b"])
    assert cells.where(second) == ({"a": ["building"]}, cells.ids["a"])
    assert cells.where(hostless) == ({"cell0": ["error"]}, cells.ids["cell0"])
    assert cells.nova.change("cell0", instances.latest_faults, [hostless])
    assert cells.nova.change("api", server_rows.list_build_requests) == []

    [failed] = wanted[:1]  # a build that failed is gone on with in its cell
    build(conductor, [failed.instance], tried(), host_lists=[[builders.selection("b1")]])
    assert [host for host, _ in conductor.compute.casts] == ["b1", "a1", "b1"]
    build(conductor, [failed.instance], tried(), host_lists=[[]])
    assert cells.where(first) == ({"b": ["error"]}, cells.ids["b"])


def test_the_members_of_a_group_are_in_all_cells(cells):
    members = [cells.put(4, "a", host="a1"), cells.put(5, "b", host="b1")]
    wanted = cells.wanted(1)
    group = cells.nova.change("api", groups.create, "g", "anti-affinity")
    uuids = [*(each.uuid for each in members), wanted[0].instance_uuid]
    cells.nova.change("api", groups.add_members, group.uuid, uuids)
    cells.conductor.scheduler.answer = [[builders.selection("a1")]]

    start(cells.conductor, wanted)

    (asked,) = cells.conductor.scheduler.asked
    assert asked.instance_group.hosts == ["a1", "b1"]
